"""Starts a program that cannot outlive its starter, under another account where that is asked.

`command()` makes the command line; run as a script, this file puts the leash on its own process
and becomes the program, which so keeps the process ID. It imports the standard library alone and
is run by `python -I -S`, so it costs a few hundredths of a second.

A process of its own rather than `preexec_fn`: Python code between fork and exec can deadlock in a
starter that has threads, and newer versions of Python warn about it.

The leash is Linux's parent-death signal. Elsewhere programs are started without it. The kernel
sends it when the *thread* that started the program ends: start programs from the main thread.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal as signals
import sys
from collections.abc import Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1
CLONE_NEWUSER = 0x10000000


def command(
    program: Sequence[str | Path], *, signal: signals.Signals, options: Sequence[str] = ()
) -> list[str]:
    """Return the command line that runs `program` until it ends or this process does.

    `signal` is what the program gets when this process dies, however it dies.
    `options` are those of the script below.
    """
    leash = [sys.executable, "-I", "-S", __file__, f"--parent={os.getpid()}"]
    return [*leash, f"--signal={signal.value}", *options, "--", *map(str, program)]


def become_user(uid: int, gid: int) -> None:
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def become_user_in_namespace(uid: int, gid: int) -> None:
    """Be `uid` in the eyes of the program, and the present user in those of the file system."""
    outer_uid, outer_gid = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "user namespaces are not allowed here")
    Path("/proc/self/uid_map").write_text(f"{uid} {outer_uid} 1")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/gid_map").write_text(f"{gid} {outer_gid} 1")


def die_with(parent: int, signal: int) -> None:
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal) != 0:
        raise OSError(ctypes.get_errno(), "the parent-death signal was refused")
    # The parent may have died before the signal was asked for; then nothing would end this.
    if os.getppid() != parent:
        sys.exit(f"the process {parent} that started this one has ended")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run a program on a leash.")
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--signal", type=int, required=True)
    parser.add_argument("--uid", type=int)
    parser.add_argument("--gid", type=int)
    parser.add_argument("--namespace", action="store_true")
    parser.add_argument("--folder", help="where the program starts")
    parser.add_argument("program", nargs="+")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> None:
    options = parse(arguments)
    if options.uid is not None:
        become = become_user_in_namespace if options.namespace else become_user
        become(options.uid, options.gid)
    if options.folder:
        os.chdir(options.folder)
    # Last, because a change of user takes the signal off again.
    die_with(options.parent, options.signal)
    os.execv(options.program[0], options.program)  # noqa: S606 (a program, not a shell)


if __name__ == "__main__":
    main(sys.argv[1:])
