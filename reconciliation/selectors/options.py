"""The six decisions in words: what each does, what it needs, and why some are not offered now.

Whether one is offered, and why not, comes from `core.options`; here it is only said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reconciliation.core.options import Option, options
from reconciliation.core.states import DecisionKind, OperationState
from reconciliation.pages import NOTE_AT_LEAST, DecisionOption, Draft, Need
from reconciliation.selectors.case import Case
from reconciliation.selectors.words import listed
from workflows.core.definitions import Step

# They come with compensating operations, which no provider here has.
NO_REPLACEMENT = DecisionOption(
    kind="replace",
    title="Replace it with a new operation",
    consequence="",
    allowed=False,
    why_not="This provider's actions have no replacement set up. If this one arrived after all, "
    "a new one would do it a second time.",
    what_would_help="Abandon it, then start a new run.",
)
NO_UNDO = DecisionOption(
    kind="undo",
    title="Undo it with a second operation",
    consequence="",
    allowed=False,
    why_not="This provider's actions have no undo set up.",
    what_would_help="Undo it at the provider by hand, and say so in the note.",
)


def options_of(case: Case, draft: Draft) -> tuple[DecisionOption, ...]:
    """All six, the offered ones first."""
    said: dict[DecisionKind, Callable[[Case, Draft], dict[str, Any]]] = {
        DecisionKind.APPLIED: applied,
        DecisionKind.SEND_AGAIN: send_again,
        DecisionKind.ABANDON: abandon,
        DecisionKind.KEEP_HOLDING: keep_holding,
    }
    known = [in_words(offer, said[offer.kind](case, draft)) for offer in offers(case)]
    return tuple(sorted([*known, NO_REPLACEMENT, NO_UNDO], key=lambda each: not each.allowed))


def offers(case: Case) -> list[Option]:
    return options(case.facts, case.now)


def in_words(offer: Option, said: dict[str, Any]) -> DecisionOption:
    return DecisionOption(
        kind=offer.kind,
        allowed=offer.allowed,
        why_not=offer.why_not,
        what_would_help=offer.what_helps,
        **said,
    )


# --- what each does ---------------------------------------------------------------------------


def applied(case: Case, draft: Draft) -> dict[str, Any]:
    accepts = case.state is OperationState.POSTCONDITION_FAILED
    verifies = case.contract.verifies and not accepts
    check = f"{case.provider} is asked whether the result is as it should be." if verifies else ""
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
            f"{step} is committed with the record that you name.",
            *starts(case),
        ),
        "warning": "What later steps send cannot be called back." if case.steps[1:] else "",
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
        "consequence": f"What is sent: {case.operation.summary}. {same_request(case, keyed)}",
        "button": "Record: send it again" if was_sent else "Record: send it",
        "then": (
            f"A worker sends it to {case.provider}, within seconds of a free one.",
            "The answer settles it; without a usable one it comes back to this queue.",
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


def abandon(case: Case, draft: Draft) -> dict[str, Any]:
    step = case.steps[0] if case.steps else None
    return {
        "title": f"Abandon this operation: {ends_as(step)}",
        "consequence": f"{abandoned_then(case, step)} Nothing more is sent. Whether it happened "
        "stays on the record as it is known now.",
        "button": "Record: abandon it",
        "then": (f"The operation ends as Abandoned. {abandoned_then(case, step)}",),
        "warning": "An abandoned operation is never taken up again.",
        "needs": (note_need(draft),),
    }


def ends_as(step: Step | None) -> str:
    if step is None or step.write is None:
        return "the run goes on or ends, as its workflow says"
    return "the run goes on without it" if step.write.on_abandon == "continue" else "the run fails"


def abandoned_then(case: Case, step: Step | None) -> str:
    if step is None or step.write is None:
        return "The run goes on without it or fails, as its workflow says."
    if step.write.on_abandon == "continue":
        return f"The run goes on without it. {' '.join(starts(case))}".strip()
    never = listed([each.name for each in case.steps[1:]])
    return f"The run fails at {step.name}. Never run: {never}." if never else "The run fails."


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


# --- shared -----------------------------------------------------------------------------------


def note_need(draft: Draft) -> Need:
    enough = len(draft.note.strip()) >= NOTE_AT_LEAST
    return Need(f"A note of at least {NOTE_AT_LEAST} characters", enough, "who told you, and where")


def goes_on(case: Case) -> str:
    names = [step.name for step in case.steps[1:]]
    if names:
        return f"The run goes on with {names[0]}."
    return "The run completes." if case.steps else "The run goes on."


def starts(case: Case) -> tuple[str, ...]:
    names = [step.name for step in case.steps[1:]]
    if not names:
        return ("The run completes.",) if case.steps else ()
    rest = f" {listed(names[1:])} follow{'s' if len(names[1:]) == 1 else ''}." if names[1:] else ""
    return (f"{names[0]} starts after that.{rest}",)
