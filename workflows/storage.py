"""The storage of outputs too large for a row: the Django storage `outputs`, and its names.

Every object has a name of its own that is never used again, so that neither a second try nor a
late worker can change what a committed reference names:

    019acf/019acf12-…/019acf13-…-5f1c09ab      shelf / run / attempt - a random part
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any
from uuid import UUID

from django.core.files.storage import FileSystemStorage, Storage, storages

from workflows.core.errors import OutputsAway
from workflows.core.words import describe

FOLDER, FILE = 0o700, 0o600  # for the owner alone
# Runs that were started within 2^24 milliseconds, some five hours, share a shelf: the first digits
# of a UUIDv7 are its time. So a listing never has to hold all runs at once.
SHELF_DIGITS = 6


class PrivateFiles(FileSystemStorage):
    """Files of the owner alone, without an address, that outlive a power cut once they are saved.

    The reference to a file is committed after it: a machine that stops between must not keep the
    reference, which the database has made durable, and lose the file.
    """

    def __init__(self, location: str | os.PathLike[str]) -> None:
        super().__init__(
            location=location, file_permissions_mode=FILE, directory_permissions_mode=FOLDER
        )

    def save(self, name: str | None, content: IO[Any], max_length: int | None = None) -> str:
        saved = super().save(name, content, max_length)
        make_durable(Path(self.path(saved)), Path(self.location))
        return saved

    def url(self, name: str | None) -> str:
        raise ValueError(f"{name} has no address: outputs are never served")


def make_durable(path: Path, top: Path) -> None:
    """Flush a file, and the folders that name it up to `top`, to the disk."""
    for each in (path, *path.parents):
        descriptor = os.open(each, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if each == top:
            break


def outputs() -> Storage:
    return storages["outputs"]


# --- names ------------------------------------------------------------------------------------


def folder_of(run: UUID) -> str:
    """The folder that holds the objects of `run` and nothing else."""
    return f"{str(run)[:SHELF_DIGITS]}/{run}"


def new_name(run: UUID, attempt: UUID) -> str:
    # The random part: some storages would overwrite an object of the same name.
    return f"{folder_of(run)}/{attempt}-{secrets.token_hex(4)}"


def objects_of(run: UUID) -> set[str]:
    """The names of all objects of `run`, whoever wrote them."""
    folder = folder_of(run)
    return {f"{folder}/{name}" for name in listed(folder)[1]}


def runs_with_objects() -> Iterator[UUID]:
    """Walk the runs that have a folder, shelf by shelf. What else lies there is passed over."""
    for shelf in listed("")[0]:
        for name in listed(shelf)[0]:
            run = run_of(name)
            if run and folder_of(run) == f"{shelf}/{name}":
                yield run


def run_of(folder: str) -> UUID | None:
    try:
        return UUID(folder)
    except ValueError:
        return None


def listed(folder: str) -> tuple[list[str], list[str]]:
    """The names of the folders and of the objects in `folder`; none where there is no such folder.

    Raises:
        OutputsAway: the storage does not answer.
    """
    try:
        return outputs().listdir(folder)
    except FileNotFoundError:
        return [], []
    except Exception as error:
        raise away(f"it does not list {folder or 'itself'}", error) from error


# --- objects ----------------------------------------------------------------------------------


def read(name: str, limit: int) -> bytes:
    """Return at most `limit` bytes of an object.

    Raises:
        FileNotFoundError: there is none of this name.
        OutputsAway: the storage does not answer.
    """
    try:
        with outputs().open(name) as file:
            data: bytes = file.read(limit)
            return data
    except FileNotFoundError:
        raise
    except Exception as error:
        raise away(f"it does not give {name}", error) from error


def delete(name: str) -> None:
    """Delete an object, and see that it is gone.

    Raises:
        OutputsAway: the storage does not answer, or has it still.
    """
    try:
        outputs().delete(name)
        still_there = outputs().exists(name)
    except Exception as error:
        raise away(f"it does not delete {name}", error) from error
    if still_there:
        raise away(f"it has {name} still, although it was to delete it")


def size(name: str) -> int:
    """The bytes of an object; none where there is no such object.

    Raises:
        OutputsAway: the storage does not answer.
    """
    try:
        return outputs().size(name)
    except FileNotFoundError:
        return 0
    except Exception as error:
        raise away(f"it does not say how large {name} is", error) from error


def modified_at(name: str) -> datetime | None:
    """When an object was written, by the storage's clock; None where there is no such object.

    Raises:
        OutputsAway: the storage does not answer.
    """
    try:
        return outputs().get_modified_time(name)
    except FileNotFoundError:
        return None
    except Exception as error:
        raise away(f"it does not say how old {name} is", error) from error


def remove_folder(run: UUID) -> None:
    """Remove the folder of a run if it is empty. Only file systems have folders to remove."""
    if isinstance(outputs(), FileSystemStorage):
        with suppress(OSError):
            outputs().delete(folder_of(run))


def away(problem: str, error: Exception | None = None) -> OutputsAway:
    because = f": {describe(error)}" if error else ""
    return OutputsAway(f"the storage of outputs ({kind()}): {problem}{because}")


def kind() -> str:
    return type(outputs()).__name__
