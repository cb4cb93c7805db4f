"""What we sent: one rung for each transmission, with the hand-overs and holds between them."""

from __future__ import annotations

import re
from itertools import pairwise

from reconciliation.core.classify import Phase
from reconciliation.core.states import HoldState, Purpose, TransmissionState
from reconciliation.models import Hold, Transmission
from reconciliation.pages import Rung, RungNote, legs
from reconciliation.selectors.case import Case
from workflows.selectors.words import counted

# The name of an exception, at the end of a detail: the record has it, a rung has no room.
EXCEPTION = re.compile(r" \(\w+\)$")

STATE_OF_HOLD = {
    HoldState.OPEN: "open",
    HoldState.DECIDED: "decided",
    HoldState.CLOSED: "released",
}


def ladder_of(case: Case) -> tuple[Rung | RungNote, ...]:
    rungs: list[Rung | RungNote] = [rung(case, row) for row in case.transmissions]
    notes = [*hand_overs(case), *(hold_note(hold) for hold in case.holds)]
    return tuple(sorted([*rungs, *notes], key=when))


def when(part: Rung | RungNote) -> tuple[object, bool]:
    return (part.at, True) if isinstance(part, RungNote) else (part.started_at, False)


def summary_of(case: Case) -> str:
    """ "4 tries: 3 left this system with no usable answer, 1 never left"."""
    states = [TransmissionState(row.state) for row in case.transmissions]
    unknown = states.count(TransmissionState.UNKNOWN)
    parts = [
        (unknown, "left this system with no usable answer"),
        (states.count(TransmissionState.NOT_SENT), "never left"),
        (states.count(TransmissionState.ACKNOWLEDGED), "answered yes"),
        (states.count(TransmissionState.REJECTED), "answered no"),
        (states.count(TransmissionState.SENDING), "on its way"),
    ]
    said = ", ".join(f"{number} {text}" for number, text in parts if number)
    return f"{counted(len(states), 'try', 'tries')}: {said}" if states else ""


def in_common(case: Case) -> str:
    """What all sends had in common; empty before the second."""
    if len(case.transmissions) < 2:  # noqa: PLR2004 (one send has nothing to share)
        return ""
    if case.contract.key is None:
        return "Every send carried the same bytes. This provider keeps no key."
    return "Every send carried the same key and the same bytes."


# --- rungs ------------------------------------------------------------------------------------


def rung(case: Case, row: Transmission) -> Rung:
    length = (row.ended_at or case.now) - row.started_at
    connect, sent, waiting = legs(row.phase, row.state, length)
    return Rung(
        number=row.number,
        started_at=row.started_at,
        by=f"{case.worker(row)} · fence {row.fence}",
        connect=connect,
        sent=sent,
        waiting=waiting,
        state=row.state,
        outcome=EXCEPTION.sub("", row.detail_redacted) or outcome(row),
        id=row.pk,
        attempt=row.attempt,
        reached=reached(row),
        ended_at=row.ended_at,
        request_id=row.provider_request_id,
        replays=row.purpose == Purpose.REPLAY,
    )


REACHED = {
    Phase.RESOLVE: "looking up the name",
    Phase.CONNECT: "connecting",
    Phase.TLS: "making the connection safe",
    Phase.SEND: "sending: some of it may have left",
    Phase.WAIT: "all of it left; no whole answer came",
    Phase.ANSWER: "the whole answer came",
}


def reached(row: Transmission) -> str:
    """How far it came, in words."""
    if row.phase:
        return REACHED[Phase(row.phase)]
    if row.state == TransmissionState.SENDING:
        return "on its way"
    return "not known: its worker went quiet, and some of it may have left"


def outcome(row: Transmission) -> str:
    match TransmissionState(row.state):
        case TransmissionState.UNKNOWN:
            return "no usable answer"
        case TransmissionState.NOT_SENT:
            return "nothing left this system"
        case TransmissionState.SENDING:
            return "no answer yet"
        case _:
            return f"answer {row.status}" if row.status else ""


# --- between the rungs ------------------------------------------------------------------------


def hand_overs(case: Case) -> list[RungNote]:
    return [
        RungNote(
            at=after.started_at,
            kind="entry",
            state="handover",
            text=(
                f"Lease moved from {case.worker(before)} to {case.worker(after)}. "
                f"Fence {before.fence} → {after.fence}, so nothing that was "
                "written under the earlier one after this counts."
            ),
        )
        for before, after in pairwise(case.transmissions)
        if before.attempt != after.attempt and case.worker(before) != case.worker(after)
    ]


def hold_note(hold: Hold) -> RungNote:
    is_open = hold.state == HoldState.OPEN
    state = STATE_OF_HOLD[HoldState(hold.state)]
    return RungNote(hold.opened_at, "hold", state, f"Held. {hold.message}", last=is_open)
