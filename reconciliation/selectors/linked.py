"""The operations that a person's decision has linked to one: what it replaces, undoes, and is."""

from __future__ import annotations

from django.urls import reverse

from reconciliation.core.states import DecisionKind
from reconciliation.decision_pages import Linked
from reconciliation.models import Operation
from reconciliation.selectors.case import Case
from reconciliation.selectors.decide_parts import in_force_of

TO_COME = {
    DecisionKind.REPLACE: ("Its replacement", "is opened by the next free worker", "was opened"),
    DecisionKind.UNDO: ("Its undo", "is opened by the next free worker", "was opened"),
}


def linked_to(case: Case) -> tuple[Linked, ...]:
    """What an operation came from first."""
    return tuple(
        Linked(how(case.operation, row), row.summary, row.state, url_of(row))
        for row in sorted(case.near, key=lambda row: row.created_at)
    )


def url_of(operation: Operation) -> str:
    return reverse("operation", args=[operation.pk])


def how(operation: Operation, other: Operation) -> str:
    if operation.supersedes_id == other.pk:
        return "Replaces"
    if operation.compensates_id == other.pk:
        return "Undoes"
    return "Replaced by" if other.supersedes_id == operation.pk else "Undone by"


def given_up(case: Case) -> str:
    """What a person's giving it up has come to, in one sentence or two."""
    decision = in_force_of(case.decisions)
    if decision is None:
        return "Nothing of it was sent: its run ended, or went on without it, before."
    kind = DecisionKind(decision.kind)
    if kind not in TO_COME:
        return "A person gave it up. Its outcome stays as it was known then."
    what, coming, never = TO_COME[kind]
    if any(each.how in ("Replaced by", "Undone by") for each in linked_to(case)):
        return f"A person gave it up. {what} is an operation of its own, linked below."
    if case.operation.run.finished_at is None:
        return f"A person gave it up. {what} {coming}."
    return f"A person gave it up. The run ended before {what.lower()} {never}: nothing was sent."
