"""Keys of an installation that was given none: made once, kept in its data folder, owner-only."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def generated(data: Path) -> list[str]:
    """Return the keys in `data`/keys, one a line, making the first one when there is none.

    Made by an atomic link, so that two processes which start together agree on one key.
    """
    try:
        return read_or_make(data / "keys", data)
    except PermissionError as error:
        raise SystemExit(
            f"{data} belongs to somebody else: give it to the user who runs Romulus, or name "
            "another folder in ROMULUS_DATA"
        ) from error


def read_or_make(path: Path, data: Path) -> list[str]:
    if not path.exists():
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = data / f"keys.{os.getpid()}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(48) + "\n")
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text().split()
