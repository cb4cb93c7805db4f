"""One operation with everything that is known of it, loaded once in a fixed number of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TypeVar
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Model, QuerySet

from reconciliation.core.contracts import Contract
from reconciliation.core.facts import Facts
from reconciliation.core.states import HoldState, OperationState
from reconciliation.models import (
    AuditEntry,
    Decision,
    DecisionProposal,
    Evidence,
    Hold,
    Operation,
    Transmission,
)
from reconciliation.selectors.words import with_owners
from reconciliation.services.facts import load_facts
from reconciliation.services.providers import contract_of
from workflows.access import may_view_payloads
from workflows.core.definitions import Step
from workflows.registry import registry
from workflows.selectors import worker_names

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
    def steps(self) -> list[Step]:
        """The operation's own step and those that may still come; none when not known here."""
        run = self.operation.run
        if not registry.has(run.workflow, run.version):
            return []
        workflow = registry.get(run.workflow, run.version)
        own = workflow.steps.get(self.operation.step)
        return [own, *workflow.later(own.name)] if own else []

    def worker(self, transmission: Transmission) -> str:
        return self.workers.get(transmission.worker, "")


def load_case(operation: Operation, user: User, now: datetime) -> Case:
    """Load what is known of an operation that `user` may see; it comes from `access`."""
    transmissions = newest(operation.transmissions.all(), "number")
    # Whoever may decide is told from the run too, which is loaded already.
    holds = newest(
        operation.holds.select_related("queue", "assignee", "proposal__by").prefetch_related(
            *with_owners()
        ),
        "opened_at",
    )
    for hold in holds:
        hold.run = operation.run
    decisions = newest(operation.decisions.all(), "at")
    of_hold = {hold.pk: hold for hold in holds}
    for decision in decisions:
        decision.hold = of_hold.get(decision.hold_id) or decision.hold
    audit = AuditEntry.objects.filter(object=f"operation:{operation.pk}", verb="asked")
    return Case(
        operation=operation,
        user=user,
        now=now,
        payloads=may_view_payloads(user, operation.run.tenant),
        facts=load_facts(operation),
        transmissions=transmissions,
        evidence=newest(operation.evidence.select_related("by"), "recorded_at"),
        holds=holds,
        decisions=decisions,
        proposals=newest(operation.proposals.select_related("end"), "at"),
        asked=newest(audit, "at"),
        workers=worker_names(row.worker for row in transmissions),
    )


def newest(rows: QuerySet[Row], order: str, shown: int = ROWS_SHOWN) -> list[Row]:
    """The newest of `rows` by what orders them, the oldest of those first.

    By the database's clock: IDs that several processes make are in order only roughly.
    """
    return list(rows.order_by(f"-{order}", "-pk")[:shown])[::-1]
