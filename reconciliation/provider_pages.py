"""What the pages of providers show: filled by `selectors.provider_page`, read by
`templates/reconciliation/provider*.html`. Plain data, as in `pages`.

- `providers` answers `providers.html` with {"page": ProvidersPage, "now"}.
- `provider` (slug) answers `provider.html` with {"page": ProviderPage, "seen", "now"}; to target
  `live` `_provider_refreshed.html`, or 204 when `?seen=` equals `seen`; 404 for who may not see it.
- `provider_review` (slug) answers `provider_review.html` with {"page": ReviewPage, "form",
  "errors", "overtaken", "now"} and changes nothing. POST: 303 to `provider` once it is reviewed;
  422 with what was typed when it was refused; 409 when somebody was first or it broke its contract
  once more; 403 for who may not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from reconciliation.core.runbook import Possible
from reconciliation.dispatch_pages import StopRow
from reconciliation.pages import Owner
from workflows.pages import Fact, Link


@dataclass(frozen=True, slots=True)
class ProviderRow:
    provider: Link
    adapter: str
    contract: str
    dispatch: str
    lacks: Sequence[str]
    overdue: bool


@dataclass(frozen=True, slots=True)
class ProvidersPage:
    """`setup_url` is empty for who may not set providers up."""

    rows: Sequence[ProviderRow]
    setup_url: str = ""


@dataclass(frozen=True, slots=True)
class ReadyPart:
    """One of the three things without which nothing is sent."""

    title: str
    text: str
    lacks: Sequence[str]


@dataclass(frozen=True, slots=True)
class SourceRow:
    """Where a contract was read; `url` is empty where there is no page to open."""

    title: str
    url: str
    evidence: str


@dataclass(frozen=True, slots=True)
class QueueOwners:
    queue: str
    takes: str
    owners: Sequence[Owner]


@dataclass(frozen=True, slots=True)
class RehearsalRow:
    at: datetime
    claims: Sequence[str]
    breaches: int


@dataclass(frozen=True, slots=True)
class Cell:
    """A number of the matrix; `shade` is its tint, a second cue beside the number itself."""

    count: int
    shade: str
    hold: bool


@dataclass(frozen=True, slots=True)
class MatrixRow:
    what: str
    cells: Sequence[Cell]
    twice: int


@dataclass(frozen=True, slots=True)
class Matrix:
    """What was staged in rehearsals by how it ended; `twice` counts double effects."""

    columns: Sequence[str]
    rows: Sequence[MatrixRow]
    totals: Sequence[int]
    twice: int
    played: int
    rehearsals: int
    latest_at: datetime


@dataclass(frozen=True, slots=True)
class HolderRow:
    """A person or group with rights on the provider or its queues. `may` has, for each column of
    `RIGHT_COLUMNS`, whether they have it."""

    owner: Owner
    members: int | None
    may: Sequence[bool]


@dataclass(frozen=True, slots=True)
class Switch:
    """The switch of the provider as a whole. `url` takes the form; empty for who may not throw it.

    `waits` counts the operations that the reader may see and that wait for it, `stops` are those
    that cover it now, wider ones too.
    """

    state: str
    url: str
    waits: int
    per_second: float
    stops: Sequence[StopRow]


@dataclass(frozen=True, slots=True)
class ContractLine:
    """A question to the contract; `known` says why its answer is relied on, or that it is not."""

    asks: str
    answer: str
    so: str
    known: str


@dataclass(frozen=True, slots=True)
class ContractSheet:
    version: str
    name: str
    questions: Sequence[ContractLine]
    reviewed: str
    overdue: bool
    scope: str
    sources: Sequence[SourceRow]
    unverified: Sequence[str]
    notes: Sequence[str]


@dataclass(frozen=True, slots=True)
class Runbook:
    """What to do when the outcome of a write to this provider is unknown."""

    record: Sequence[str]
    evidence: Sequence[str]
    holds: Sequence[Possible]


@dataclass(frozen=True, slots=True)
class ProviderPage:
    """One provider. `contract` and `runbook` are None while it has no contract."""

    name: str
    slug: str
    facts: Sequence[Fact]
    dispatch: str
    dispatch_url: str
    switch: Switch
    setup_url: str
    parts: Sequence[ReadyPart]
    contract: ContractSheet | None
    contradicted_at: datetime | None
    contradiction: str
    review_url: str
    queues: Sequence[QueueOwners]
    runbook: Runbook | None
    rehearsals: Sequence[RehearsalRow]
    matrix: Matrix | None
    holders: Sequence[HolderRow]
    right_columns: Sequence[str]

    @property
    def ready(self) -> int:
        return sum(not part.lacks for part in self.parts)


@dataclass(frozen=True, slots=True)
class HeldRow:
    operation: Link
    since: datetime


@dataclass(frozen=True, slots=True)
class ReviewPage:
    """What broke a provider's contract, and what a review of that does.

    `shown` stands for what is reviewed; it is empty where nothing is. `why_not` is empty for who
    may review it. `held` counts the holds for it that the reader may see, `rows` are the first.
    """

    name: str
    slug: str
    contradicted_at: datetime | None
    contradiction: str
    shown: str
    trust: str
    held: int
    rows: Sequence[HeldRow]
    why_not: str
