"""What the pages of dispatch show: filled by `selectors.dispatch_page`, read by
`templates/reconciliation/dispatch*.html`. Plain data, as in `pages`.

- `dispatch` answers `dispatch.html` with {"page": DispatchPage, "now"}.
- `dispatch_change` (GET `?provider=&tenant=&action=`) answers `dispatch_change.html` with {"page":
  ChangePage, "form", "now"} and changes nothing. POST: 303 to `dispatch` once it is set; 422 with
  the form and what was typed when it was refused; 403 for who may not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from workflows.pages import Link


@dataclass(frozen=True, slots=True)
class StopRow:
    """A switch that is thrown. `waits` counts the operations that the reader may see and that wait
    for it; `change_url` is empty for who may not turn it on."""

    covers: str
    state: str
    by: str
    at: datetime
    until: datetime | None
    reason: str
    waits: int
    change_url: str


@dataclass(frozen=True, slots=True)
class DispatchPage:
    rows: Sequence[StopRow]
    may_stop: bool


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """An operation that waits; `next_move` says what would become of it if dispatch were on."""

    operation: Link
    next_move: str
    since: datetime


@dataclass(frozen=True, slots=True)
class ChangePage:
    """What a change is about: what it covers, how it is now, and what waits for it.

    `seen` is posted with it: the stop that it was shown with.
    """

    covers: str
    state: str
    said: str
    seen: str
    waits: int
    rows: Sequence[WaitingRow]
    per_second: float
