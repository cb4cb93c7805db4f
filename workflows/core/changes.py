"""What a change of something that is set up looks like on the record: before and after, by field.

Pure. The record is kept for ever, so nothing that may be a secret goes into it (promise P9): what
is sealed never, and of what is typed as JSON no value whose name speaks of a secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from datetime import date, datetime, timedelta
from typing import Any

NOT_SHOWN = "[not shown]"
LONGEST = 500  # characters of one value
# Headers as a whole: providers take secrets in some that they have named themselves.
SECRET = re.compile(
    r"secret|token|passw|passphrase|pwd|credential|auth|cookie|api.?key|private|headers$", re.I
)

Changes = dict[str, list[Any]]
"""[before, after], by field; a part of a JSON field by its path with dots."""


def changes_between(
    before: Mapping[str, Any], after: Mapping[str, Any], *, sealed: Set[str] = frozenset()
) -> Changes:
    """What differs, for fields that are in either.

    Args:
        sealed: fields of which only the fact is told that they changed.
    """
    found: Changes = {}
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if name in sealed or SECRET.search(name):
            found[name] = [NOT_SHOWN, NOT_SHOWN]
        elif isinstance(old, dict) and isinstance(new, dict):
            inner = changes_between(old, new)
            found |= {f"{name}.{path}": pair for path, pair in inner.items()}
        else:
            found[name] = [shown(old), shown(new)]
    return found


def shown(value: Any) -> Any:
    """A value as the record keeps it: short, plain, and without what may be a secret."""
    match value:
        case None | bool() | int():
            return value
        case dict():
            return {
                str(name): NOT_SHOWN if SECRET.search(str(name)) else shown(part)
                for name, part in value.items()
            }
        case list() | tuple():
            return [shown(part) for part in value]
        case datetime() | date():
            return value.isoformat()
        case timedelta():
            return str(value)
        case _:
            text = str(value)
            return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
