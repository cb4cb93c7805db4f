"""One operation with everything that is known of it, loaded once in a fixed number of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TypeVar
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Model, Q, QuerySet

from reconciliation.access import visible_providers
from reconciliation.core.contracts import Contract
from reconciliation.core.facts import Facts
from reconciliation.core.states import HoldState, OperationState
from reconciliation.models import (
    AuditEntry,
    Decision,
    DecisionDraft,
    DecisionProposal,
    DispatchStop,
    Evidence,
    Hold,
    Operation,
    Transmission,
)
from reconciliation.selectors.two_people import Seconds, seconds_of
from reconciliation.selectors.words import give_people, people_of
from reconciliation.services.authorise import Approved, approved_lists
from reconciliation.services.dispatch import stops_of
from reconciliation.services.drafts import drafts_of
from reconciliation.services.facts import Rows, load_facts
from reconciliation.services.providers import contract_of
from workflows.access import may_view_payloads
from workflows.core.ahead import Ahead
from workflows.core.definitions import Step
from workflows.models import Run, Worker
from workflows.selectors import named
from workflows.selectors.ahead import ahead_of, branches_beside, waiting_above
from workflows.selectors.run_steps import workflow_of
from workflows.together import together

# An operation has a budget of a few sends and look-ups; more comes only from people's asking.
ROWS_SHOWN = 200

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True)
class Case:
    """An operation as `user` may see it at `now`; rows stand in the order in which they came."""

    operation: Operation
    user: User
    now: datetime
    payloads: bool
    facts: Facts
    transmissions: Sequence[Transmission]
    evidence: Sequence[Evidence]
    holds: Sequence[Hold]
    decisions: Sequence[Decision]
    proposals: Sequence[DecisionProposal]
    asked: Sequence[AuditEntry]
    workers: Mapping[UUID, str]
    draft: DecisionDraft | None  # what the reader has typed and not sent
    near: Sequence[Operation]  # that a decision has linked to it
    branches: Sequence[Run]  # beside its own, in a parallel group
    above: Sequence[Run]  # that wait for the one that started its own
    stops: Sequence[DispatchStop]  # in force over it
    sees_provider: bool

    @cached_property
    def hold(self) -> Hold | None:
        """The open hold, with the operation on it."""
        return next((hold for hold in self.holds if hold.state == HoldState.OPEN), None)

    @property
    def state(self) -> OperationState:
        return OperationState(self.operation.state)

    @property
    def contract(self) -> Contract:
        return contract_of(self.operation)

    @property
    def provider(self) -> str:
        return self.operation.provider.name

    @cached_property
    def step(self) -> Step | None:
        """The operation's own step; None when it is not known here."""
        workflow = workflow_of(self.operation.run)
        return workflow.steps.get(self.operation.step) if workflow else None

    @cached_property
    def ahead(self) -> Ahead | None:
        """What comes after that step; None when it is not known here."""
        return ahead_of(self.operation.run, self.operation.step, self.branches, self.above)

    @cached_property
    def seconds(self) -> Seconds:
        """Who may confirm what the reader proposes."""
        return seconds_of(self.hold, self.user)

    def worker(self, transmission: Transmission) -> str:
        return self.workers.get(transmission.worker, "")


def load_case(operation: Operation, user: User, now: datetime) -> Case:
    """Load what is known of an operation that `user` may see; it comes from `access`.

    One query for all that lies about it, and what `load_facts` asks beside.
    """
    audit = AuditEntry.objects.filter(object=f"operation:{operation.pk}", verb="asked")
    workers = Worker.objects.filter(pk__in=operation.transmissions.order_by().values("worker"))
    held = operation.holds.select_related("queue", "assignee", "proposal__by")
    lists = together(
        newest_first(operation.transmissions.all(), "number"),
        newest_first(operation.evidence.all(), "recorded_at"),
        newest_first(held, "opened_at"),
        newest_first(operation.decisions.all(), "at"),
        newest_first(operation.proposals.select_related("end"), "at"),
        newest_first(audit, "at"),
        stops_of(operation),
        workers,
        *people_of(operation.holds.all()),
        drafts_of(user, operation.pk),
        near_operations(operation),
        branches_beside(operation.run),
        waiting_above(operation.run),
        visible_providers(user).filter(pk=operation.provider_id),
        *approved_lists(operation),
    )
    transmissions, evidence, holds, decisions, proposals, asked = (rows[::-1] for rows in lists[:6])
    stops, known, owners, shifts, drafts, near, branches, above, provider = lists[6:15]
    approved = Approved.read(lists[15:], now)
    give_people(holds, owners, shifts)
    # Whoever may decide is told from the run and the operation too, which are loaded already.
    for hold in holds:
        hold.run, hold.operation = operation.run, operation
    of_hold = {hold.pk: hold for hold in holds}
    for decision in decisions:
        decision.hold = of_hold.get(decision.hold_id) or decision.hold
    # What is moved rests on all of it, however much that is.
    is_all = max(len(transmissions), len(evidence)) < ROWS_SHOWN
    rows = Rows(transmissions, evidence, holds, stops, approved) if is_all else None
    return Case(
        operation=operation,
        user=user,
        now=now,
        payloads=may_view_payloads(user, operation.run.tenant),
        facts=load_facts(operation, rows=rows),
        transmissions=transmissions,
        evidence=evidence,
        holds=holds,
        decisions=decisions,
        proposals=proposals,
        asked=asked,
        workers=named((row.worker for row in transmissions), known),
        draft=next(iter(drafts), None),
        near=near,
        branches=branches,
        above=above,
        stops=stops,
        sees_provider=bool(provider),
    )


def near_operations(operation: Operation) -> QuerySet[Operation]:
    """Those that a decision has linked to it: what it came from, and what came of it."""
    before = [each for each in (operation.supersedes_id, operation.compensates_id) if each]
    near = Q(pk__in=before) | Q(supersedes=operation.pk) | Q(compensates=operation.pk)
    return Operation.objects.filter(near).only(
        "summary", "state", "supersedes", "compensates", "created_at"
    )


def newest_first(rows: QuerySet[Row], order: str, shown: int = ROWS_SHOWN) -> QuerySet[Row]:
    """The newest of `rows` by what orders them.

    By the database's clock: IDs that several processes make are in order only roughly.
    """
    return rows.order_by(f"-{order}", "-pk")[:shown]
