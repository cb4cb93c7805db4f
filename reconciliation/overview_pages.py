"""What the overview shows: filled by selectors, read by `templates/reconciliation/overview.html`.

Plain data without Django. Address `start` (`/`): `overview.html` with {"page": OverviewPage,
"now"}; target `overview`: `_overview.html`, or 204 while `?seen=` equals what there is. `?range=`
is how far back it looks: `1h`, `24h` (usual), `7d`, `30d`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from workflows.core.charts import Chart
from workflows.core.ranges import Range
from workflows.pages import Filter, Link
from workflows.worker_pages import Health


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state of things in a sentence or two; `kind` and `state` choose its plate."""

    lead: str
    text: str
    kind: str
    state: str


@dataclass(frozen=True, slots=True)
class Figure:
    """One number, and what it means; `kind` and `state` paint the note where it says a state."""

    term: str
    value: str
    note: str
    kind: str = ""
    state: str = ""


@dataclass(frozen=True, slots=True)
class Need:
    """A case that the reader answers for."""

    url: str
    title: str
    text: str
    due_at: datetime
    is_late: bool
    amount: str = ""


@dataclass(frozen=True, slots=True)
class ProviderLine:
    provider: Link
    dispatch: str
    unknown: int
    held: int
    contradiction: str = ""


@dataclass(frozen=True, slots=True)
class Wrong:
    """An effect that is known not to be as it was meant."""

    url: str
    title: str
    text: str
    at: datetime
    state: str  # of the kind "wrong"


@dataclass(frozen=True, slots=True)
class Strip:
    """The runs of one state, by slices of time."""

    state: str
    chart: Chart
    most: int


@dataclass(frozen=True, slots=True)
class OverviewPage:
    """What one person sees of how things are.

    Attributes:
        needs: the most urgent of the cases that are theirs.
        mine, total: how many are theirs, and how many that they may see wait for anybody.
        since: from when on the figures of `back` count: of very many, the newest alone do.
        starts: when each slice of the charts begins.
        ranges: how far back one may look.
        url: this very page, and what is seen of it.
    """

    verdict: Verdict
    health: tuple[Health, ...]
    figures: tuple[Figure, ...]
    needs: tuple[Need, ...]
    mine: int
    total: int
    providers: tuple[ProviderLine, ...]
    more_providers: bool
    ages: Chart
    latencies: Chart
    sends: Chart
    runs: tuple[Strip, ...]
    starts: tuple[datetime, ...]
    wrong: tuple[Wrong, ...]
    since: datetime
    back: Range
    ranges: tuple[Filter, ...]
    url: str
