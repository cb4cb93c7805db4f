"""A case under its row in the queue: enough to know whether to open it, or whom to give it to."""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth.models import User

from reconciliation import access
from reconciliation.core.facts import HoldReason
from reconciliation.core.states import HoldState, TransmissionState
from reconciliation.models import Hold, Transmission
from reconciliation.pages import Leg, legs
from reconciliation.queue_pages import Preview, Said, Sent
from reconciliation.selectors.case import Case, load_case
from reconciliation.selectors.evidence import cards_of
from reconciliation.selectors.operation_page import blocks
from reconciliation.selectors.queue import subject_of, url_of
from reconciliation.selectors.words import amount_of, sentence_of
from workflows.core.words import listed
from workflows.selectors.words import counted

SENDS_SHOWN = 4
SAID_SHOWN = 4
BLOCKS_NAMED = 3

OUTCOMES = {
    TransmissionState.ACKNOWLEDGED: "answered yes",
    TransmissionState.REJECTED: "answered no",
    TransmissionState.NOT_SENT: "not sent",
    TransmissionState.UNKNOWN: "no reply",
    TransmissionState.SENDING: "on its way",
}


def preview_of(hold: Hold, user: User, now: datetime) -> Preview:
    """The preview of a hold that `user` may see at `now`; it comes from `access.hold_for`."""
    case = load_case(hold.operation, user, now) if hold.operation else None
    said = sentence_of(hold)
    is_open = hold.state == HoldState.OPEN
    decides, assigns = access.may_decide(user, hold), access.may_assign(user, hold)
    return Preview(
        hold=hold.pk,
        title=subject_of(hold),
        url=url_of(hold),
        intended=intended(hold),
        blocks=blocked(case) if case else "",
        why=f"{said.known} {said.unknown}".strip(),
        sent=sends(case) if case else (),
        sent_none=sent_none(hold),
        said_title="What the provider says" if case else "What would settle it",
        said=says(case) if case else (),
        said_none="Nobody was asked yet." if case else said.settles,
        may_assign=is_open and assigns,
        may_claim=is_open and decides and hold.assignee_id is None,
        may_snooze=is_open and (decides or assigns),
    )


def intended(hold: Hold) -> str:
    operation = hold.operation
    if operation is None:
        return f"{subject_of(hold)}."
    amount = amount_of(operation)
    return f"{operation.summary}, {amount}." if amount else f"{operation.summary}."


def blocked(case: Case) -> str:
    steps = [step.note or step.name for step in blocks(case)[1:]]
    if not steps:
        return "Blocks nothing else."
    named = steps[:BLOCKS_NAMED]
    if len(steps) > BLOCKS_NAMED:
        named = [*named, f"{len(steps) - BLOCKS_NAMED} more"]
    return f"Blocks {counted(len(steps), 'step')}: {listed(named)}."


def sends(case: Case) -> tuple[Sent, ...]:
    """The latest of them, the oldest first."""
    return tuple(sent(row, case.now) for row in case.transmissions[-SENDS_SHOWN:])


def sent(row: Transmission, now: datetime) -> Sent:
    state = TransmissionState(row.state)
    length = (row.ended_at or now) - row.started_at
    return Sent(
        row.number, worst(legs(row.phase, row.state, length)), row.started_at, said_of(state)
    )


def worst(three: tuple[Leg, Leg, Leg]) -> Leg:
    """The leg that tells how it ended: where it stopped, or what is not known of it."""
    return next((leg for leg in three if leg.kind in ("gap", "short", "stop")), three[-1])


def said_of(state: TransmissionState) -> str:
    return OUTCOMES[state]


def sent_none(hold: Hold) -> str:
    if hold.operation is None:
        return "It is about no write: nothing was sent."
    return "Nothing was sent." if hold.reason != HoldReason.UNREACHABLE else "Nothing arrived."


def says(case: Case) -> tuple[Said, ...]:
    return tuple(
        Said("stale" if card.stale else card.kind, card.title, card.observed_at)
        for card in cards_of(case)[:SAID_SHOWN]
    )
