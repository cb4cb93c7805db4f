"""The files of the console's pages, gathered for serving: compressed, and named by their content.

A browser keeps them for ever, since another content has another name; a first visit loads a quarter
of their size. A sheet that imports others is gathered with them in it: nothing is shown before all
have come, and on a phone each question takes longer than the answer. What is imported is ours, and
comes without its comments and indentation: a fifth of what a phone waits for.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.files.base import ContentFile, File
from django.core.files.storage import Storage
from whitenoise.storage import CompressedManifestStaticFilesStorage

STAMP = "gathered"  # says of what a folder was made
GATHER = ("manage.py", "collectstatic", "--no-input", "--verbosity=0")

# Of a sheet beside it; what is imported into a layer stays a file of its own.
IMPORT = re.compile(r'@import url\("([\w-]+\.css)"\);')
FOR_READERS = re.compile(r"/\*.*?\*/|(?<=\n)\s+", re.DOTALL)


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


class Gathered(CompressedManifestStaticFilesStorage):
    """Where they lie for serving."""

    def post_process(
        self, paths: Mapping[str, tuple[Storage, str]], *args: Any, **options: Any
    ) -> Iterator[Any]:
        whole = {
            name: (WholeSheets(storage), path) if name.endswith(".css") else (storage, path)
            for name, (storage, path) in paths.items()
        }
        yield from super().post_process(whole, *args, **options)


class WholeSheets:
    """Style sheets as they lie in `storage`, with those that they import in their place."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def open(self, path: str) -> File[bytes]:
        return ContentFile(self._text(path).encode())

    def _text(self, path: str) -> str:
        with self._storage.open(path) as file:
            text = file.read().decode()
        folder = path.rpartition("/")[0]
        return IMPORT.sub(lambda found: self._part(f"{folder}/{found[1]}".lstrip("/")), text)

    def _part(self, path: str) -> str:
        return FOR_READERS.sub("", self._text(path))
