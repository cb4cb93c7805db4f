"""The decisions on a run that is held at a step, in words."""

from __future__ import annotations

from dataclasses import replace

from django.contrib.auth.models import User

from reconciliation.core.states import DecisionKind
from reconciliation.decision_pages import DecisionOption, Draft, Need
from reconciliation.models import Hold
from reconciliation.selectors.options import note_need
from reconciliation.selectors.two_people import for_two, seconds_of
from reconciliation.services.offers import Ground
from workflows.core.ahead import Ahead, when_failed


def run_options(
    ground: Ground, user: User, draft: Draft, after: Ahead | None
) -> tuple[DecisionOption, ...]:
    """What is offered on a hold of a run, in words.

    Args:
        after: what comes after the step; None where that is not known here.
    """
    hold = ground.hold
    said = {
        DecisionKind.TRY_AGAIN: try_again,
        DecisionKind.FAIL_RUN: fail_run,
        DecisionKind.KEEP_HOLDING: keep_holding,
    }
    seconds = seconds_of(hold, user)
    known = (
        replace(
            said[offer.kind](hold, draft, after),
            allowed=offer.allowed,
            why_not=offer.why_not,
            what_would_help=offer.what_helps,
        )
        for offer in ground.offers
    )
    return tuple(for_two(option, hold, seconds) for option in known)


def try_again(hold: Hold, draft: Draft, _after: Ahead | None) -> DecisionOption:
    step = hold.held_run.step
    return DecisionOption(
        kind=DecisionKind.TRY_AGAIN,
        title="Try the step again",
        consequence=f"A worker takes {step} up again. What was tried before does not count "
        "against it. Steps that are committed are not run again.",
        allowed=True,
        button="Record: try it again",
        then=(f"The run is ready, and a free worker begins {step} anew.",),
        needs=(note_need(draft),),
    )


def fail_run(hold: Hold, draft: Draft, after: Ahead | None) -> DecisionOption:
    waits = when_failed(after.waiting) if after and after.waiting else ""
    return DecisionOption(
        kind=DecisionKind.FAIL_RUN,
        title="End the run: it counts as failed",
        consequence=f"The run ends at {hold.held_run.step}. The steps after it never run. What is "
        f"committed stays as it is. {waits}".strip(),
        allowed=True,
        button="Record: end the run",
        then=(f"The run ends as Failed, with your note on its record. {waits}".strip(),),
        warning="A run that has ended is never taken up again.",
        needs=(note_need(draft),),
    )


def keep_holding(_hold: Hold, draft: Draft, _after: Ahead | None) -> DecisionOption:
    return DecisionOption(
        kind=DecisionKind.KEEP_HOLDING,
        title="Keep holding",
        consequence="Nothing moves. The case stays in the queue and is due again at the time that "
        "you give.",
        allowed=True,
        button="Record: keep holding",
        then=("The case is due again at the time that you give.",),
        needs=(
            Need("Until when", bool(draft.until), "a time that is not past"),
            note_need(draft),
        ),
        needs_until=True,
    )
