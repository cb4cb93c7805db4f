"""What was found by a search. Plain data without Django.

Address `search` (`?q=`; `&kind=` for all of one kind, `&after=` an ID for what follows it):
`search.html` with {"page": SearchPage, "now"}; with `&go=1`, which the search box sends, a whole
ID that leads to one thing alone is answered by 302 to its page.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from workflows.core.needles import Fit


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing that was found, and by which of its texts."""

    id: UUID
    url: str
    title: str
    detail: str
    fit: Fit
    name: str  # of the text that fits: "start key"
    text: str
    kind: str  # with `state`, as in the vocabulary; empty where it has none
    state: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Group:
    """What was found of one kind, the best first; `more_url` leads to those after these."""

    kind: str
    title: str
    hits: tuple[Hit, ...]
    total: int
    capped: bool = False  # there may be more than `total`
    more_url: str = ""
    first_url: str = ""


@dataclass(frozen=True, slots=True)
class SearchPage:
    """`too_short`: of what was typed only labels of IDs could be looked for, so nothing was."""

    q: str
    groups: tuple[Group, ...]
    kind: str = ""
    too_short: bool = False

    @property
    def total(self) -> int:
        return sum(group.total for group in self.groups)
