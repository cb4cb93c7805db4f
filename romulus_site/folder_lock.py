"""A lock on a folder that ends with its holder, however the holder ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Held(Exception):
    """Another process holds the lock."""

    def __init__(self, holder: str) -> None:
        super().__init__(f"held by process {holder}")
        self.holder = holder


def acquire(path: Path) -> int:
    """Take the lock at `path` and return what `release` needs; raise Held at once if it is taken.

    The file stays: deleting it would let two processes hold locks on two files of one name.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(descriptor, 20).decode()
        os.close(descriptor)
        raise Held(holder) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor


def release(descriptor: int) -> None:
    os.close(descriptor)


@contextmanager
def hold(path: Path) -> Iterator[None]:
    descriptor = acquire(path)
    try:
        yield
    finally:
        release(descriptor)
