"""The six decisions in words: what each does, what it needs, and why some are not offered now.

Whether one is offered, and why not, comes from `core.options`; here it is only said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reconciliation.core.decide import unresolved_sends
from reconciliation.core.options import Option, options
from reconciliation.core.protection import why_unguarded
from reconciliation.core.standing import RESTS_ON_EVIDENCE, last_said, must_ask_first
from reconciliation.core.states import DecisionKind, OperationState
from reconciliation.decision_pages import NOTE_AT_LEAST, DecisionOption, Draft, Need
from reconciliation.selectors.case import Case
from reconciliation.selectors.two_people import for_two
from reconciliation.selectors.words import clock
from reconciliation.services.offers import undoing_of
from workflows.core import ahead
from workflows.core.definitions import Step
from workflows.core.durations import took
from workflows.core.words import read_length


def options_of(case: Case, draft: Draft) -> tuple[DecisionOption, ...]:
    """All six, the offered ones first."""
    return tuple(in_words(case, offer, draft) for offer in offers(case))


def offers(case: Case) -> list[Option]:
    return options(case.facts, case.now, undoing_of(case.operation))


def in_words(case: Case, offer: Option, draft: Draft) -> DecisionOption:
    said = SAID[offer.kind](case, draft)
    asked = asked_need(case, offer.kind)
    if asked is not None:
        said["needs"] = (asked, *said["needs"])
    option = DecisionOption(
        kind=offer.kind,
        allowed=offer.allowed,
        why_not=offer.why_not,
        what_would_help=offer.what_helps,
        **said,
    )
    return for_two(option, case.hold, case.seconds)


def asked_need(case: Case, kind: DecisionKind) -> Need | None:
    """That the provider was asked lately, for what rests on what it says."""
    rests = kind in RESTS_ON_EVIDENCE and bool(case.facts.sent) and not case.facts.elsewhere
    rests = rests and not case.state.is_settled
    if not rests or case.contract.look_up is None:
        return None
    last = last_said(case.facts)
    said = f"it last answered {took(case.now - last)} ago" if last else "it was not asked yet"
    met = not must_ask_first(kind, case.facts, case.now)
    helps = "" if met else "; press Ask the provider again first"
    return Need("The provider asked within 15 minutes", met, f"{said}{helps}")


# --- what each does ---------------------------------------------------------------------------


def still_right(draft: Draft) -> dict[str, Any]:
    """Of what was settled, and is contradicted since."""
    return {
        "title": "It is done: say which record is right",
        "consequence": "The record that you name is kept beside the others. Nothing is sent, and "
        "neither the operation nor its run moves.",
        "button": "Record: this record is right",
        "then": ("The case is closed. The operation stays as it was settled.",),
        "warning": "What is there twice has to be undone at the provider.",
        "needs": (
            Need("The record at the provider", bool(draft.resource), "its ID, as written there"),
            note_need(draft),
        ),
        "needs_resource": True,
    }


def applied(case: Case, draft: Draft) -> dict[str, Any]:
    if case.state.is_settled:
        return still_right(draft)
    accepts = case.state is OperationState.POSTCONDITION_FAILED
    verifies = case.contract.verifies and not accepts
    check = (
        f"{case.provider} is asked whether the result is as it should be; where it is not, or "
        "cannot be seen, the case is held again."
        if verifies
        else ""
    )
    what = "The result counts as it is." if accepts else "The operation becomes Applied."
    told = f" {check}" if check else ""
    step = case.operation.step
    return {
        "title": "Accept the result as it is"
        if accepts
        else "It is done: accept a record as the result",
        "consequence": f"{what}{told} {goes_on(case)} Nothing is sent to {case.provider}.",
        "button": "Record: it is done",
        "then": (
            *((check,) if check else ()),
            f"{step} is committed with the record that is named.",
            *starts(case),
        ),
        "warning": "What later steps send cannot be called back." if leads_on(case) else "",
        "needs": (
            Need("The record at the provider", bool(draft.resource), "its ID, as written there"),
            note_need(draft),
        ),
        "needs_resource": True,
    }


def send_again(case: Case, draft: Draft) -> dict[str, Any]:
    was_sent = bool(case.transmissions)
    keyed = case.contract.key is not None
    return {
        "title": "It is not done: send it again" if was_sent else "Send it now",
        "consequence": f"What is sent: {case.operation.summary}. {same_request(case, keyed)}"
        f"{guarded(case)}",
        "button": "Record: send it again" if was_sent else "Record: send it",
        "then": (
            f"A worker sends it to {case.provider}, as soon as one is free.",
            "Without a usable answer the case comes back to this queue; a usable one settles it.",
            *starts(case),
        ),
        "warning": ""
        if keyed or not was_sent
        else "It carries no key: if the first send arrives after all, it happens twice.",
        "needs": (note_need(draft),),
    }


def same_request(case: Case, keyed: bool) -> str:
    sent = "the same request, byte for byte"
    if not keyed:
        return f"It is {sent}, to {case.provider}."
    return f"It is {sent}, under the same key {case.operation.idempotency_key}."


def guarded(case: Case) -> str:
    """What follows if an earlier send arrived after all; empty where none can have."""
    if not unresolved_sends(case.facts):
        return ""
    if why_unguarded(case.facts, case.now) is None and case.facts.replay_not_after:
        ends = clock(case.facts.replay_not_after, case.now.tzinfo)
        return (
            f" If an earlier one took effect after all, it still happens once: until {ends} "
            f"{case.provider} knows the key."
        )
    return (
        f" No key guards it: if an earlier one took effect after all, it happens twice. "
        f"{case.provider} shows no record of one."
    )


def abandon(case: Case, draft: Draft) -> dict[str, Any]:
    return {
        "title": f"Abandon this operation: {ends_as(case.step)}",
        "consequence": f"{abandoned_then(case)} Nothing more is sent, and what is "
        "known of it now stays on the record.",
        "button": "Record: abandon it",
        "then": (f"The operation ends as Abandoned. {abandoned_then(case)}",),
        "warning": "An abandoned operation is never taken up again.",
        "needs": (note_need(draft),),
    }


def replace_it(case: Case, draft: Draft) -> dict[str, Any]:
    may_be_twice = bool(unresolved_sends(case.facts))
    twice = (
        "If this one arrived after all, it happens twice: nothing ties the new one to it."
        if may_be_twice
        else "Nothing of this one can have happened."
    )
    step = case.operation.step
    return {
        "title": "Replace it with a new operation: "
        + ("it may happen twice" if may_be_twice else "under a new key"),
        "consequence": f"What is sent: {case.operation.summary}, once more, as a new operation "
        f"under a new identity. {twice} This one ends as Abandoned; its outcome stays as it is "
        "known now.",
        "button": "Record: replace it, it may happen twice"
        if may_be_twice
        else "Record: replace it",
        "then": (
            "This operation ends as Abandoned, and is linked to the new one.",
            f"A worker asks step {step} for the same write once more; if it means another one now, "
            "nothing is sent and the run is held.",
            f"The new operation is sent to {case.provider}, if contract, readiness and dispatch "
            "allow it then.",
            *starts(case),
        ),
        "warning": "A second effect cannot be called back by this decision."
        if may_be_twice
        else "",
        "needs": (note_need(draft),),
    }


def undo_it(case: Case, draft: Draft) -> dict[str, Any]:
    return {
        "title": f"Undo it with a second operation: {ends_as(case.step)}",
        "consequence": f"The workflow describes the write that takes it back; that is sent to "
        f"{case.provider} as an operation of its own, which may be held itself. "
        f"{abandoned_then(case)}",
        "button": "Record: undo it",
        "then": (
            "This operation ends as Abandoned: it took effect, and is linked to its undo.",
            f"A worker sends the undo to {case.provider}, and its result settles it.",
            abandoned_then(case),
        ),
        "warning": "If the provider refuses the undo, the run is held: what was done is then "
        "still there.",
        "needs": (note_need(draft),),
    }


def ends_as(step: Step | None) -> str:
    if step is None or step.write is None:
        return "the run goes on or ends, as its workflow says"
    return "the run goes on without it" if step.write.on_abandon == "continue" else "the run fails"


def abandoned_then(case: Case) -> str:
    step = case.step
    if step is None or step.write is None or case.ahead is None:
        return "The run goes on without it or fails, as its workflow says."
    if step.write.on_abandon == "continue":
        return f"The run goes on without it. {' '.join(starts(case))}"
    return ahead.fails(case.ahead, step.name)


def keep_holding(_case: Case, draft: Draft) -> dict[str, Any]:
    return {
        "title": "Keep holding",
        "consequence": "Nothing moves and nothing is sent. The case stays in the queue and is due "
        "again at the time that you give.",
        "button": "Record: keep holding",
        "then": ("The case is due again at the time that you give.",),
        "needs": (
            Need("Until when", bool(draft.until), "a time that is not past"),
            note_need(draft),
        ),
        "needs_until": True,
    }


SAID: dict[DecisionKind, Callable[[Case, Draft], dict[str, Any]]] = {
    DecisionKind.APPLIED: applied,
    DecisionKind.SEND_AGAIN: send_again,
    DecisionKind.REPLACE: replace_it,
    DecisionKind.UNDO: undo_it,
    DecisionKind.ABANDON: abandon,
    DecisionKind.KEEP_HOLDING: keep_holding,
}

# --- shared -----------------------------------------------------------------------------------


def note_need(draft: Draft) -> Need:
    enough = read_length(draft.note) >= NOTE_AT_LEAST
    return Need(f"A note of at least {NOTE_AT_LEAST} characters", enough, "who told you, and where")


def goes_on(case: Case) -> str:
    return ahead.goes_on(case.ahead) if case.ahead else "The run goes on."


def starts(case: Case) -> tuple[str, ...]:
    return ahead.starts(case.ahead) if case.ahead else ()


def leads_on(case: Case) -> bool:
    """Whether anything can be sent once the operation is settled."""
    return case.ahead is None or bool(case.ahead.follows.steps or case.ahead.waiting)
