"""What Romulus itself could not go on with, and could not hold for a person either.

The run is given back with that as its reason. Its step may have done its work, so nobody executes
it meanwhile: whoever claims the run next tries to hold it, and nothing else.
"""

from __future__ import annotations

from datetime import timedelta

from workflows.core.states import RunState
from workflows.models import Run
from workflows.services.claims import Claim, release
from workflows.services.kinds import Hold

NOT_HELD = "not_held"
REST, LONGEST_REST = timedelta(minutes=1), timedelta(minutes=10)


def hold_later(claim: Claim, crashed: Hold, why: str) -> None:
    """Give the run back in one plain statement: a hold has an entry in the audit record, a queue
    and people who are told, and one of these was refused.

    Args:
        why: what was refused, in words.
    """
    message = (
        f"{crashed.message} It could not be held for a person either: {why}. That is tried again, "
        "and until then the step is not executed. The log of this attempt says more."
    )
    release(
        claim,
        RunState.READY,
        failure={"reason": NOT_HELD, "message": message, "crashed": crashed.message},
        error=message,
        delay=min(REST * claim.number, LONGEST_REST),
    )


def still_to_hold(claim: Claim) -> Hold | None:
    """What an earlier try of this step is to be held for; None: nothing."""
    if claim.number == 1:
        return None
    failure = Run.objects.values_list("failure", flat=True).get(pk=claim.run) or {}
    if failure.get("reason") != NOT_HELD:
        return None
    return Hold("step_crashed", failure["crashed"])
