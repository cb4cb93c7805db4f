"""What can be decided on a hold now, and what that rests on: loaded once for each question."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from reconciliation.access import Parts, parts_in
from reconciliation.core.errors import InvalidDecision, NotAllowed
from reconciliation.core.facts import Dispatch, Facts, Known
from reconciliation.core.options import Option, options
from reconciliation.core.second_identity import Undoing
from reconciliation.core.standing import must_ask_first, takes_two
from reconciliation.core.states import SETTLED, DecisionKind, EvidenceKind
from reconciliation.models import Hold, Operation
from reconciliation.services.facts import load_facts
from workflows.registry import registry
from workflows.services.clock import database_now

RUN_KINDS = (DecisionKind.TRY_AGAIN, DecisionKind.FAIL_RUN, DecisionKind.KEEP_HOLDING)
# Holds whose step would end as before: why, and what helps instead.
HOPELESS = {
    "rejected": (
        "The provider has refused it for good: it would be refused again.",
        "Ending the run, and starting a new one.",
    ),
    "children_failed": (
        "The runs that it started have ended, and not as the step needs: it would find them so "
        "again.",
        "Ending the run, and starting a new one for what is still to be done.",
    ),
    "undo_refused": (
        "The provider has refused the undo for good: it would be refused again.",
        "Undoing it at the provider by hand, then ending the run.",
    ),
}
NOT_AS_SHOWN = (
    "What is known has changed since you opened this form, and nothing was recorded. It is shown "
    "as it is now: read it, then decide on it."
)
ASK_FIRST = (
    "The provider was not asked within the last 15 minutes: ask it again first, then decide on "
    "what it says now."
)


@dataclass(frozen=True)
class Ground:
    """What a decision on a hold stands on at `now`; `facts` are of its operation, if it has one."""

    hold: Hold
    facts: Facts | None
    now: datetime
    offers: Sequence[Option]

    @cached_property
    def parts(self) -> Parts:
        return parts_in(self.hold)


def ground_of(hold: Hold, *, whatever_stops: bool = False) -> Ground:
    """
    Args:
        whatever_stops: as it would be if dispatch were on.
    """
    now = database_now()
    if hold.operation is None:
        return Ground(hold, None, now, [offer_on_run(hold, kind) for kind in RUN_KINDS])
    facts = load_facts(hold.operation)
    if whatever_stops:
        facts = replace(facts, dispatch=Dispatch.ON)
    return Ground(hold, facts, now, options(facts, now, undoing_of(hold.operation)))


def offer_on_run(hold: Hold, kind: DecisionKind) -> Option:
    if kind is DecisionKind.TRY_AGAIN and hold.reason in HOPELESS:
        return Option(kind, False, *HOPELESS[hold.reason])
    unsettled = hold.held_run.operations.exclude(state__in=SETTLED)
    if kind is DecisionKind.FAIL_RUN and unsettled.exists():
        return Option(
            kind,
            False,
            "An operation of this run is not settled: its outcome must be known first.",
            "Trying the step again, which settles the operation or holds it.",
        )
    return Option(kind, True)


def undoing_of(operation: Operation) -> Undoing:
    """Whether the workflow of an operation, in its run's version, says how it is undone."""
    run = operation.run
    if operation.compensates_id is not None:
        return Undoing.IS_ONE
    if not registry.has(run.workflow, run.version):
        return Undoing.NOT_KNOWN
    step = registry.get(run.workflow, run.version).steps.get(operation.step)
    declared = step is not None and step.write is not None and step.write.undo is not None
    return Undoing.DECLARED if declared else Undoing.NOT_DECLARED


def ensure_offered(ground: Ground, kind: DecisionKind) -> None:
    """Raises `NotAllowed` or `InvalidDecision`: it is not offered now, or not on what is fresh."""
    offer = next((offer for offer in ground.offers if offer.kind is kind), None)
    if offer is None:
        raise InvalidDecision("kind", "Choose one of the decisions that are shown.")
    if not offer.allowed:
        raise NotAllowed(offer.why_not)
    if ground.facts is not None and must_ask_first(kind, ground.facts, ground.now):
        raise InvalidDecision("kind", ASK_FIRST)


def needs_second(hold: Hold, kind: DecisionKind) -> bool:
    """Whether a decision on `hold`, whose queue and operation come with it, takes two people.

    A hold that no queue takes is an administrator's alone.
    """
    if hold.queue is None:
        return False
    amount = hold.operation.amount if hold.operation is not None else None
    return takes_two(kind, hold.queue.approvals_needed, hold.queue.second_from, amount)


def basis_of(ground: Ground) -> dict[str, Any]:
    """What a proposal rests on, as plain JSON: when it has changed, the proposal is void.

    That the provider was asked once more and said the same, or could not be asked, changes nothing.
    """
    hold = ground.hold
    if ground.facts is None:
        run = hold.held_run
        return {"reason": hold.reason, "step": run.step, "visit": run.visit}
    said = {verdict_of(known) for known in ground.facts.known if tells(known)}
    return {
        "reason": hold.reason,
        "state": str(ground.facts.state),
        "sends": len(ground.facts.sent),
        "said": sorted(list(verdict) for verdict in said),
    }


def basis_digest(ground: Ground) -> str:
    """Something short that a form carries: what a decision with it rests on, as it was shown; and
    what else makes its consequence another one: how many people it takes, and which version of
    the workflow goes on from it."""
    hold = ground.hold
    two = sorted(str(offer.kind) for offer in ground.offers if needs_second(hold, offer.kind))
    shown = basis_of(ground) | {"two": two, "version": hold.held_run.version}
    basis = json.dumps(shown, sort_keys=True)
    return hashlib.sha256(basis.encode()).hexdigest()[:16]


def ensure_as_shown(ground: Ground, shown: str) -> None:
    """Raises `InvalidDecision`: what is known is not what the form was shown with."""
    if shown and shown != basis_digest(ground):
        raise InvalidDecision("basis", NOT_AS_SHOWN)


def tells(known: Known) -> bool:
    return known.kind is not EvidenceKind.UNAVAILABLE


def verdict_of(known: Known) -> tuple[str, ...]:
    seen = (known.completes, known.denies, known.postcondition)
    return (str(known.kind), *map(str, seen), known.resource or "")


def what_was_shown(ground: Ground) -> dict[str, Any]:
    """What the person saw, for the record."""
    hold = ground.hold
    evidence = hold.operation.evidence.order_by("recorded_at", "id") if hold.operation else []
    return {
        "reason": hold.reason,
        "message": hold.message,
        "options": [
            {"kind": str(offer.kind), "allowed": offer.allowed, "why_not": offer.why_not}
            for offer in ground.offers
        ],
        "evidence": [str(row.pk) for row in evidence],
    }
