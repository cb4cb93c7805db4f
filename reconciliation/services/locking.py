"""A hold under its locks, and whether it is still what a person has read."""

from __future__ import annotations

from uuid import UUID

from reconciliation.core.errors import AlreadyDecided, NotAllowed
from reconciliation.core.states import DecisionKind, HoldState
from reconciliation.models import Decision, Hold, Operation
from reconciliation.services.holds import why_closed
from reconciliation.services.ledger import WITH_PROVIDER
from workflows.models import Run

OF_AN_EVENT = (
    "This hold is of an event: attach the event to a wait or dismiss it, on its page or with "
    "manage.py events. The hold ends with that."
)


def locked(hold_id: UUID) -> Hold:
    """Lock run, operation and hold, in that order, and return the hold with both, its queue and
    the proposal that is open."""
    run_id = Hold.objects.values_list("run_id", flat=True).get(pk=hold_id)
    if run_id is None:
        raise NotAllowed(OF_AN_EVENT)
    run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
    operation_id = Hold.objects.values_list("operation_id", flat=True).get(pk=hold_id)
    operation = None
    if operation_id is not None:
        operation = (
            Operation.objects.select_for_update(of=("self",), no_key=True)
            .select_related(*WITH_PROVIDER)
            .get(pk=operation_id)
        )
    hold = (
        Hold.objects.select_for_update(of=("self",), no_key=True)
        .select_related("queue", "proposal__by")
        .get(pk=hold_id)
    )
    hold.run = run
    hold.operation = operation
    return hold


def ensure_unchanged(hold: Hold, version: int) -> None:
    """Raises `AlreadyDecided`, with what came first, unless the hold is open as it was read."""
    if hold.state == HoldState.CLOSED:
        raise AlreadyDecided(
            f"{why_closed(hold)} meanwhile, and the hold was closed by it.", last_decision(hold)
        )
    if hold.state == HoldState.OPEN and hold.proposal is not None:
        raise AlreadyDecided(
            f"Nothing was recorded of yours: {hold.proposal.by_name} has proposed a decision, "
            "which somebody else confirms or refuses first.",
            hold.proposal,
        )
    if hold.state != HoldState.OPEN or hold.version != version:
        last = last_decision(hold)
        first = what_came_first(hold, version, last)
        raise AlreadyDecided(f"Nothing was recorded of yours: {first}.", last)


def what_came_first(hold: Hold, version: int, last: Decision | None) -> str:
    """What has happened to a hold since its `version` was read, in a few words."""
    if last is not None and (hold.state != HoldState.OPEN or last.hold_version >= version):
        return f"{last.by_name} decided first: {last.kind.replace('_', ' ')}"
    ended = hold.proposals.filter(hold_version__gte=version - 1).order_by("-hold_version").first()
    if ended is not None:
        return f"what {ended.by_name} proposed has ended meanwhile"
    return "it has changed"


def last_decision(hold: Hold) -> Decision | None:
    """The decision in force on a hold: the latest that is no correction."""
    decisions = hold.decisions.exclude(kind=DecisionKind.CORRECTION).select_related("by")
    return decisions.order_by("-hold_version").first()
