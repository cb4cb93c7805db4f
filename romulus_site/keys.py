"""Keys of an installation that was given none: made once, kept in its data folder, owner-only."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def generated(data: Path) -> list[str]:
    """Return the keys in `data`/keys, one a line, making the first one when there is none.

    Made by an atomic link, so that two processes which start together agree on one key.
    """
    path = data / "keys"
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
