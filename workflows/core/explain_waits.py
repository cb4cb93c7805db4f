"""Why a wait is where it is: since when, for what, until when and then what, and what has come.

Pure. A sentence, what would move it, who owns that, and the facts; part of why a run is where it
is (`core.explain`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from workflows.core.durations import age, moment, on
from workflows.core.explain_workers import lacks_sweep, sweep_moves
from workflows.core.near_misses import NearMiss, Said
from workflows.core.proposals import APPROVAL_EVENT
from workflows.core.run_facts import Cause, Explanation, RunFacts
from workflows.core.states import WaitState
from workflows.core.steps import END
from workflows.core.wait_facts import Taken, WaitFacts
from workflows.core.words import who

NEAR_SAID = 3
THEN = {
    "fail": "then the run fails",
    "continue": "then it goes on without",
    "hold": "then a person is asked",
    END: "then it ends",
}


def open_wait(facts: RunFacts, wait: WaitFacts, now: datetime) -> Explanation:
    """Why a run whose wait is open does not go on."""
    rests_on = wait_facts(wait)
    waits = f"It waits {facts.place} {since(wait, now)} for {expects(wait)}, {until(wait, now)}."
    if wait.arrived is not None and wait.ambiguous:
        return Explanation(
            Cause.AMBIGUOUS,
            f"{waits} {came(wait.arrived, now)} Other waits could take it too, and none was picked."
            f"{so_far(wait)}",
            "Attaching the event to the wait that is meant, on the event's page.",
            facts.owner or "whoever answers for the source of the event",
            rests_on,
        )
    if wait.arrived is not None:
        moves, owner = sweep_moves(facts, "gives it to the run", now)
        cause = Cause.SWEEP_BEHIND if lacks_sweep(facts, now) else Cause.ARRIVED
        sentence = f"{waits} {came(wait.arrived, now)} It is not processed yet.{so_far(wait)}"
        return Explanation(cause, sentence, moves, owner, rests_on)
    if wait.deadline is not None and wait.deadline <= now:
        moves, owner = sweep_moves(facts, "carries that out", now)
        cause = Cause.SWEEP_BEHIND if lacks_sweep(facts, now) else Cause.EVENT
        sentence = f"{waits} Its time is over.{so_far(wait)}"
        return Explanation(cause, sentence, moves, owner, rests_on)
    if wait.expected.types == (APPROVAL_EVENT,):
        return unanswered(facts, wait, now, rests_on)
    said, moves = nothing_or_near(wait, now)
    sentence = f"{waits} {said}".rstrip() + so_far(wait)
    return Explanation(Cause.EVENT, sentence, moves, sender(wait), rests_on)


def unanswered(
    facts: RunFacts, wait: WaitFacts, now: datetime, rests_on: dict[str, Any]
) -> Explanation:
    """Why a run that has proposed something does not go on."""
    return Explanation(
        Cause.EVENT,
        f"It waits {facts.place} {since(wait, now)} for somebody to approve or deny what it has "
        f"proposed, {until(wait, now)}.",
        "An answer on the page of its proposal, under Approvals.",
        "whoever may approve for the tenant",
        rests_on,
    )


def nothing_or_near(wait: WaitFacts, now: datetime) -> tuple[str, str]:
    """What has come that is not it, and what would help."""
    helps = "The event, or its deadline." if wait.deadline else "The event."
    if not wait.looked:
        return "", helps
    if not wait.near:
        more = "No more" if wait.got else "No such event"
        return f"{more} has come.", helps
    number = len(wait.near)
    close = "1 event came close" if number == 1 else f"{number} events came close"
    listed = "; ".join(near_text(miss, now) for miss in wait.near[:NEAR_SAID])
    return (
        f"No such event has come, but {close}: {listed}.",
        "The event; or, if one that came close is meant, attaching it by hand on its page.",
    )


def near_text(miss: NearMiss, now: datetime) -> str:
    event = miss.event
    what = f"{event.type} “{event.correlation}”, {age(now - event.received_at)} ago"
    return f"{what} ({miss.nearness.sentence.rstrip('.')})"


def resolved_before(wait: WaitFacts, now: datetime) -> str:
    """How a wait that is over ended, in a sentence before that of its run."""
    match wait.state:
        case WaitState.RESOLVED:
            text = f"Its wait was resolved {at(wait, now)}"
            return f"{text} by {', '.join(taken_text(each) for each in wait.taken)}."
        case WaitState.EXPIRED:
            return f"Its wait for {expects(wait)} ended {at(wait, now)} without it."
        case _:
            return f"Its wait for {expects(wait)} was cancelled {at(wait, now)}."


def at(wait: WaitFacts, now: datetime) -> str:
    return on(wait.resolved_at, now) if wait.resolved_at else "before"


def taken_text(taken: Taken) -> str:
    event = taken.event
    named = f"{event.type} {event.event_id}".strip()
    by = f", attached by {who(taken.by)}: {taken.reason.rstrip('.')}" if taken.by else ""
    return f"{named}{f' of {event.source}' if event.source else ''}{by}"


# --- the parts of a sentence ------------------------------------------------------------------


def since(wait: WaitFacts, now: datetime) -> str:
    return f"since {moment(wait.started_at, now)}"


def expects(wait: WaitFacts) -> str:
    """What it is for: "charge.refunded or charge.failed with correlation “48213”"."""
    types = " or ".join(wait.expected.types)
    number = f"{wait.needed} events of {types}" if wait.needed > 1 else types
    return f"{number} with correlation “{wait.expected.correlation}”"


def until(wait: WaitFacts, now: datetime) -> str:
    """Until when, and what follows then."""
    if wait.deadline is None:
        return "without a deadline"
    then = THEN.get(wait.on_deadline)
    if then is None:
        then = f"then it goes on at {wait.on_deadline}" if wait.on_deadline else ""
    ends = f"until {moment(wait.deadline, now)}"
    return f"{ends}; {then}" if then else ends


def came(event: Said, now: datetime) -> str:
    return f"{event.type} came {age(now - event.received_at)} ago."


def so_far(wait: WaitFacts) -> str:
    return f" It has {wait.got} of {wait.needed}." if wait.needed > 1 else ""


def sender(wait: WaitFacts) -> str:
    return f"whoever sends {' or '.join(wait.expected.types)}"


# --- facts ------------------------------------------------------------------------------------


def wait_facts(wait: WaitFacts) -> dict[str, Any]:
    """The facts behind the sentences, by name."""
    return {
        "wait": {
            "state": str(wait.state),
            "types": list(wait.expected.types),
            "correlation": wait.expected.correlation,
            "started_at": wait.started_at,
            "deadline": wait.deadline,
            "on_deadline": wait.on_deadline,
            "needed": wait.needed,
            "got": wait.got,
            "resolved_at": wait.resolved_at,
        },
        "taken": [taken_fact(each) for each in wait.taken],
        "arrived": said_fact(wait.arrived) if wait.arrived else None,
        "near_misses": [
            said_fact(miss.event) | {"differs": str(miss.nearness)} for miss in wait.near
        ],
    }


def said_fact(event: Said) -> dict[str, Any]:
    return {
        "type": event.type,
        "correlation": event.correlation,
        "received_at": event.received_at,
        "event_id": event.event_id,
        "source": event.source,
        "id": str(event.id),
    }


def taken_fact(taken: Taken) -> dict[str, Any]:
    return said_fact(taken.event) | {"at": taken.at, "by": taken.by, "reason": taken.reason}
