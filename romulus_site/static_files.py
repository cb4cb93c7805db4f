"""The files of the console's pages, gathered for serving: compressed, and named by their content.

A browser keeps them for ever, since another content has another name; a first visit loads a quarter
of their size.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders

STAMP = "gathered"  # says of what a folder was made
GATHER = ("manage.py", "collectstatic", "--no-input", "--verbosity=0")


class NotGathered(Exception):
    """The files of the pages could not be gathered."""


def gather(folder: Path) -> None:
    """Gather them into `folder`, unless they are there as they are now.

    In a process of its own, whose settings name the folder. Raises NotGathered with what it said.
    """
    sources = digest_of_sources()
    stamp = folder / STAMP
    if stamp.exists() and stamp.read_text() == sources:
        return
    done = subprocess.run(  # noqa: S603 (our own command line)
        [sys.executable, *GATHER],
        cwd=settings.BASE_DIR,
        env=os.environ | {"STATIC_ROOT": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise NotGathered(f"The files of the pages were not gathered: {done.stderr.strip()}")
    stamp.write_text(sources)


def digest_of_sources() -> str:
    """Changes whenever a file that is gathered comes, goes or changes."""
    return hashlib.sha256("\n".join(sorted(sources())).encode()).hexdigest()


def sources() -> Iterator[str]:
    for finder in get_finders():
        for name, storage in finder.list(None):
            file = Path(storage.path(name)).stat()
            yield f"{name} {file.st_size} {file.st_mtime_ns}"
