"""What an embedded server that did not end well leaves behind: itself, or its lock file.

The caller holds the folder's lock, so no server found here has an owner any more.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from romulus_site.embedded.errors import EmbeddedError
from romulus_site.polling import wait_until

PROC = Path("/proc")
# A clean stop writes what is in memory to disk: seconds on a slow disk. An immediate one does not.
CLEAN_STOP_SECONDS = 30.0
IMMEDIATE_STOP_SECONDS = 10.0
STOP_SIGNALS = (
    (signal.SIGINT, CLEAN_STOP_SECONDS),
    (signal.SIGQUIT, IMMEDIATE_STOP_SECONDS),
)


def clear(cluster: Path) -> None:
    """Make way for a new server in `cluster`; raise EmbeddedError when that is not safe."""
    lock_file = cluster / "postmaster.pid"
    pid = recorded_pid(lock_file)
    if pid is None:
        return
    if is_server_of(pid, cluster):
        stop(pid, cluster)
    if not wait_until(lambda: not any(processes_in(cluster)), IMMEDIATE_STOP_SECONDS):
        raise EmbeddedError(f"Processes of an earlier server still use {cluster}.")
    if is_alive(pid):
        give_up_lock(lock_file)
    # Else PostgreSQL takes over the dead server's lock file by itself, after checking that nothing
    # uses the shared memory that the file names: a guard that deleting the file would remove.


def give_up_lock(lock_file: Path) -> None:
    """Delete a lock file whose process ID now is another program's, or a dead server's not yet
    collected by the system: PostgreSQL would take either for a running server and not start.
    """
    if not PROC.is_dir():
        raise EmbeddedError(
            f"{lock_file} names a process that is not PostgreSQL; "
            "delete the file if no server uses that folder."
        )
    lock_file.unlink(missing_ok=True)


def recorded_pid(lock_file: Path) -> int | None:
    try:
        return int(lock_file.read_text().splitlines()[0])
    except (FileNotFoundError, IndexError, ValueError):
        return None


def is_alive(pid: int) -> bool:
    """Whether there is such a process; a dead one that nobody has collected yet counts."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def stop(pid: int, cluster: Path) -> None:
    for number, limit in STOP_SIGNALS:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        if wait_until(lambda: not is_server_of(pid, cluster), limit):
            return
    raise EmbeddedError(f"The earlier server of {cluster}, process {pid}, does not end.")


def is_server_of(pid: int, cluster: Path) -> bool:
    # The command line, because the working folder of another account's process may be hidden.
    shown = command_line(pid)
    return "postgres" in shown and f"-D {cluster}" in shown


def command_line(pid: int) -> str:
    """Return how a process was started; nothing when it has ended."""
    if not PROC.is_dir():
        ps = ["ps", "-o", "command=", "-p", str(pid)]
        run = subprocess.run(ps, check=False, capture_output=True, text=True)  # noqa: S603 (our own command line)
        return run.stdout
    try:
        return (PROC / str(pid) / "cmdline").read_text(errors="replace").replace("\0", " ")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def processes_in(cluster: Path) -> Iterator[int]:
    """Yield the processes that work in `cluster`, as all of a server's do; on Linux only."""
    for entry in PROC.glob("[1-9]*"):
        if working_folder(entry) == cluster:
            yield int(entry.name)


def working_folder(process: Path) -> Path | None:
    """Return where a process works; None when it has ended or is somebody else's."""
    try:
        return (process / "cwd").readlink()
    except OSError:
        return None
