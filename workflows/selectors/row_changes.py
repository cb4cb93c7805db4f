"""What has changed of a list of runs since somebody saw it: which rows, and nothing of the others.

A poll names each row that it has seen by the end of its ID and by what it showed. Lists are in the
order of IDs, so that a row never moves among those that stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256

from workflows.pages import RunList, RunRow

KEY, DIGEST = 12, 8  # hexadecimal digits
SEEN = re.compile(rf"([0-9a-f]{{{KEY}}})([0-9a-f]{{{DIGEST}}})")


@dataclass(frozen=True, slots=True)
class NewRow:
    """A row, and the key of the one that it stands before; empty: at the end."""

    row: RunRow
    before: str


@dataclass(frozen=True, slots=True)
class Changes:
    """Attributes:
    gone: the keys of rows that are there no more.
    changed: rows that show something else.
    new: rows that were not there, from the top.
    """

    gone: tuple[str, ...]
    changed: tuple[RunRow, ...]
    new: tuple[NewRow, ...]


def seen_of(page: RunList) -> str:
    """What a poll of `page` has seen: what stands around its rows, then each of them."""
    counts = [replace(each, count=None) for each in page.filters]
    around = (
        *(counts, page.scope, page.parent, page.pauses, page.moving, page.filtered),
        *(bool(page.pager.newer), bool(page.pager.older)),
    )
    numbers = [each.count for each in page.filters]
    rows = "".join(row.key + digest_of(row) for row in page.rows)
    return f"{digest_of(around)}-{digest_of(numbers)}-{rows}"


def changes_since(seen: str, page: RunList) -> Changes | None:
    """What has changed of the rows of `page` since they were `seen`; None where so much else has
    that the list is better made anew."""
    around, _, rows = (*seen.split("-", 2), "", "")[:3]
    before = dict(SEEN.findall(rows))
    now = {row.key: row for row in page.rows}
    if around != seen_of(page).partition("-")[0] or before.keys().isdisjoint(now):
        return None
    return Changes(
        gone=tuple(key for key in before if key not in now),
        changed=tuple(
            row for key, row in now.items() if key in before and before[key] != digest_of(row)
        ),
        new=tuple(new_rows(page, before)),
    )


def new_rows(page: RunList, before: dict[str, str]) -> Iterator[NewRow]:
    below, found = "", []
    for row in reversed(page.rows):
        if row.key in before:
            below = row.key
        else:
            found.append(NewRow(row, below))
    yield from reversed(found)


def digest_of(shown: object) -> str:
    return sha256(repr(shown).encode()).hexdigest()[:DIGEST]
