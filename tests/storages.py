"""Storages of outputs for tests: files in a folder of the test's own, and some that misbehave."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage
from pytest_django import Settings

from workflows.storage import PrivateFiles


def use(settings: Settings, folder: Path, kind: type[FileSystemStorage] = PrivateFiles) -> Path:
    """Let outputs of more than 100 bytes lie in `folder`, in a storage of this kind."""
    settings.ROMULUS_INLINE_OUTPUT_BYTES = 100
    backend = f"{kind.__module__}.{kind.__qualname__}"
    settings.STORAGES = settings.STORAGES | {
        "outputs": {"BACKEND": backend, "OPTIONS": {"location": folder}}
    }
    return folder


def files_in(folder: Path) -> list[str]:
    """The names of all objects."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


class LosesBytes(PrivateFiles):
    def save(self, name: str | None, content: IO[Any], max_length: int | None = None) -> str:
        return super().save(name, ContentFile(content.read()[:-1]), max_length)


class ChangesBytes(PrivateFiles):
    def save(self, name: str | None, content: IO[Any], max_length: int | None = None) -> str:
        data = content.read()
        return super().save(name, ContentFile(data[:-2] + b"!" + data[-1:]), max_length)


class AddsBytes(PrivateFiles):
    def save(self, name: str | None, content: IO[Any], max_length: int | None = None) -> str:
        return super().save(name, ContentFile(content.read() + b" "), max_length)


class IsFull(PrivateFiles):
    """Keeps the first half, as a disk does that is full by then."""

    def save(self, name: str | None, content: IO[Any], max_length: int | None = None) -> str:
        data = content.read()
        super().save(name, ContentFile(data[: len(data) // 2]), max_length)
        raise OSError(28, "No space left on device")


class ForgetsAtOnce(PrivateFiles):
    def save(self, name: str | None, content: IO[Any], max_length: int | None = None) -> str:
        saved = super().save(name, content, max_length)
        self.delete(saved)
        return saved


class OverwritesNames(FileSystemStorage):
    """As buckets do by default: an object of the same name is replaced."""

    def __init__(self, location: Path) -> None:
        super().__init__(location, allow_overwrite=True)


class ChoosesNames(PrivateFiles):
    def save(self, name: str | None, content: IO[Any], max_length: int | None = None) -> str:
        return super().save(f"{name}.json", content, max_length)


class IsAway(PrivateFiles):
    """Takes objects, and answers nothing afterwards."""

    def open(self, *_: Any) -> Any:
        raise ConnectionError("no answer from https://key:secret@storage.example")

    def delete(self, *_: Any) -> None:
        raise ConnectionError("no answer")

    def listdir(self, *_: Any) -> Any:
        raise ConnectionError("no answer")


class DeletesNothing(PrivateFiles):
    """As a bucket does whose objects are locked: it says that it has."""

    def delete(self, name: str) -> None:
        pass


class DiesDeleting(PrivateFiles):
    """The process ends when it comes to delete."""

    def delete(self, *_: Any) -> None:
        raise KeyboardInterrupt
