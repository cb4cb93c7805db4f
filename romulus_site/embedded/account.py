"""Whom the embedded server runs as: PostgreSQL refuses root.

An ordinary user runs it as itself. Root lets the folder's owner or a system account run it, where
that one reaches the folders; else a user namespace shows the server another user while its files
stay root's; where that is forbidden too, the programs are copied to where the account reaches them.
Permissions are only ever given on the data folder itself, never on a parent of it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from romulus_site import leash
from romulus_site.embedded.binaries import Binaries

SYSTEM_ACCOUNTS = ("postgres", "nobody")


@dataclass(frozen=True)
class Account:
    """Who the server runs as (`options` for the leash) and who its files belong to."""

    owner: int
    group: int
    options: tuple[str, ...] = ()

    def own(self, folder: Path) -> None:
        """Make `folder` and what is in it this account's; raises PermissionError if it cannot."""
        if folder.stat().st_uid == self.owner:
            return
        for parent, folders, files in os.walk(folder):
            for name in (*folders, *files):
                os.chown(Path(parent, name), self.owner, self.group, follow_symlinks=False)
        # The folder itself last: a walk that was cut short is begun again next time.
        os.chown(folder, self.owner, self.group)

    def let_through(self, data: Path) -> None:
        """Let this account pass `data` (not list it); nobody else gains anything."""
        state = data.stat()
        mode = state.st_mode
        if self.owner in (os.geteuid(), state.st_uid) or mode & 0o001:
            return
        os.chown(data, -1, self.group)
        data.chmod(mode & 0o707 | 0o010)

    def can_run(self, binaries: Binaries, folders: Iterable[Path]) -> bool:
        """Whether this account can start the programs and reach each of `folders`."""
        # initdb, because it needs libraries from outside its folder, as the server does not.
        program = (binaries.initdb, "--version")
        return all(self._runs(program, folder) for folder in folders)

    def _runs(self, program: Sequence[str | Path], folder: Path) -> bool:
        options = (*self.options, f"--folder={folder}")
        command = leash.command(program, signal=signal.SIGKILL, options=options)
        run = subprocess.run(command, check=False, capture_output=True)  # noqa: S603 (our own command line)
        return run.returncode == 0


def choose(binaries: Binaries, data: Path, sockets: Path) -> tuple[Account, Binaries] | None:
    """Return who runs the server in `data` and by which programs, or None when nobody can.

    `sockets` is the folder of the socket, in `data` or elsewhere.
    """
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid()), binaries
    candidates = list(accounts_of_root(data))
    reached = {data, sockets.parent}
    for account in candidates:
        account.let_through(data)
        if account.can_run(binaries, reached):
            return account, binaries
    if candidates and binaries.from_wheel:
        return with_copy(candidates[0], binaries, data, reached)
    return None


def with_copy(
    account: Account, binaries: Binaries, data: Path, reached: set[Path]
) -> tuple[Account, Binaries] | None:
    folder = data / f"binaries-{binaries.version}"
    copied = binaries.copy_to(folder)
    account.own(folder)
    if account.can_run(copied, reached):
        return account, copied
    shutil.rmtree(folder)
    return None


def accounts_of_root(data: Path) -> Iterator[Account]:
    """Yield those whom root may let run the server of `data`, the preferred one first."""
    if data.stat().st_uid != 0:
        # Made by an ordinary user, who shall find everything usable afterwards.
        with suppress(KeyError):
            yield dropping_to(pwd.getpwuid(data.stat().st_uid))
    for name in SYSTEM_ACCOUNTS:
        with suppress(KeyError):
            system = dropping_to(pwd.getpwnam(name))
            break
    else:
        return
    yield system
    if sys.platform == "linux":
        yield Account(0, 0, (*system.options, "--namespace"))


def dropping_to(entry: pwd.struct_passwd) -> Account:
    options = (f"--uid={entry.pw_uid}", f"--gid={entry.pw_gid}")
    return Account(entry.pw_uid, entry.pw_gid, options)
