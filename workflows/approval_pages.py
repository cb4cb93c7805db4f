"""What the pages of approvals show: the list of proposals, and one of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from workflows.core.boundary.canonical import Difference
from workflows.pages import Fact, Filter, Link, Pager


@dataclass(frozen=True, slots=True)
class ProposalRow:
    """One proposal in the list. `pick` is what its box posts; empty where this reader may not
    approve it, and `why_not` says why."""

    id: UUID
    url: str
    title: str
    target: str
    amount: str
    who: str
    on_behalf_of: str
    state: str
    asked_at: datetime
    expires_at: datetime
    ended_at: datetime | None
    pick: str
    why_not: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one of those that were approved together."""

    title: str
    url: str
    done: bool
    said: str


@dataclass(frozen=True, slots=True)
class ApprovalsPage:
    rows: tuple[ProposalRow, ...]
    views: tuple[Filter, ...]
    pager: Pager
    open_only: bool
    outcomes: tuple[Outcome, ...] = ()

    @property
    def can_pick(self) -> bool:
        return any(row.pick for row in self.rows)


@dataclass(frozen=True, slots=True)
class AnswerChoice:
    """One answer that a person may give, or why not."""

    kind: str
    title: str
    consequence: str
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class AnswerForm:
    digest: str
    token: UUID
    choices: tuple[AnswerChoice, ...]
    chosen: str = ""
    note: str = ""
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def offered(self) -> tuple[AnswerChoice, ...]:
        return tuple(choice for choice in self.choices if not choice.why_not)

    @property
    def not_offered(self) -> tuple[AnswerChoice, ...]:
        return tuple(choice for choice in self.choices if choice.why_not)


@dataclass(frozen=True, slots=True)
class AnswerGiven:
    kind: str
    by: str
    at: datetime
    note: str


@dataclass(frozen=True, slots=True)
class CheckLine:
    """One check of the boundary: `state` is `passed` or `failed`."""

    state: str
    said: str


@dataclass(frozen=True, slots=True)
class RecordLine:
    """One answer of the boundary that is on record: `state` is `allowed` or `denied`."""

    state: str
    at: datetime
    text: str
    checks: tuple[CheckLine, ...]


@dataclass(frozen=True)
class ProposalPage:
    """One proposal, in words for whoever answers for what it does.

    Attributes:
        before: what was proposed the last time, and how it ended; None for the first.
        differences: from then to now.
        parameters: all that would be sent; None: this reader may not see it.
        checks: what the boundary would say now, while it is open.
        again_url: where the same is asked for again; empty where nothing waits for that.
    """

    id: UUID
    url: str
    title: str
    state: str
    lead: str
    helps: str
    facts: tuple[Fact, ...]
    run: Link
    expires_at: datetime
    parameters: tuple[Difference, ...] | None
    before: str
    differences: tuple[Difference, ...]
    answers: tuple[AnswerGiven, ...]
    checks: tuple[CheckLine, ...]
    records: tuple[RecordLine, ...]
    form: AnswerForm | None
    why_no_form: str
    again_url: str
    overtaken: str = ""
