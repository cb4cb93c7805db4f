"""The decision form as it is shown: its options, its code, and the token that is posted once."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime

from django.urls import reverse

from reconciliation.core import standing
from reconciliation.core.local_times import zone_said
from reconciliation.core.standing import Standing
from reconciliation.core.states import DecisionKind
from reconciliation.decision_pages import (
    CorrectionForm,
    DecisionForm,
    DecisionOption,
    Draft,
    EvidenceChoice,
    Overtaken,
)
from reconciliation.models import Decision, DecisionDraft, DecisionProposal, Hold
from reconciliation.selectors.attempts import PAGES, Attempted, new_token, subject_of
from reconciliation.selectors.words import (
    DECISIONS,
    bar_of,
    name_of,
    owners_of,
    proposed,
    recorded,
)
from reconciliation.services.answers import code_of
from reconciliation.services.offers import Ground, basis_digest

ONLY_OWNERS = "You can read this case, but not decide it."
ANSWER = "Your answer to the proposal"
NAMED_OWNERS = 5
WAYS_ON = {
    DecisionKind.APPLIED: "If a later step must not run, cancel the run. If the effect is not "
    "there, start a new run for it.",
    DecisionKind.SEND_AGAIN: "What was sent cannot be called back. If it happened twice, take one "
    "back at the provider.",
    DecisionKind.ABANDON: "An abandoned operation is never taken up again. Start a new run for it, "
    "or cancel this one.",
    DecisionKind.REPLACE: "What was sent cannot be called back. If it happened twice, take one "
    "back at the provider.",
    DecisionKind.UNDO: "What was taken back is not made again by itself: start a new run for it.",
}
WAY_ON = "If the run must not go on, cancel it."


def drafted(attempted: Attempted, kept: DecisionDraft | None) -> Draft:
    """What stands in the form: what was just sent, else what was typed earlier and kept."""
    if attempted.of == "decide" and attempted.draft != Draft():
        return attempted.draft
    if kept is None:
        return Draft()
    known = {each.name for each in fields(Draft)}
    return Draft(**{name: text for name, text in kept.typed.items() if name in known})


def by_clocks_of(zone: str, draft: Draft) -> Draft:
    """The draft without a time that was typed by other clocks: here it would be another one."""
    same = (draft.zone or str(UTC)) == zone
    return draft if same else replace(draft, until="", zone=zone)


def form_of(
    ground: Ground,
    options: tuple[DecisionOption, ...],
    evidence: tuple[EvidenceChoice, ...],
    attempted: Attempted,
    kept: DecisionDraft | None,
) -> DecisionForm:
    """`ground.now` is in the zone of the reader, by whose clocks a time is typed."""
    hold = ground.hold
    subject, case = subject_of(hold), hold.case_id
    draft = drafted(attempted, kept)
    mine = attempted.of == "decide"
    zone = str(ground.now.tzinfo or UTC)
    return DecisionForm(
        url=reverse(f"{PAGES[subject]}_decide", args=[case]),
        page_url=reverse(PAGES[subject], args=[case]),
        draft_url=reverse(f"{PAGES[subject]}_draft", args=[case]),
        subject=subject,
        options=options,
        code=code_of(case),
        version=hold.version,
        token=new_token(hold),
        basis=basis_digest(ground),
        read_at=ground.now,
        zone=zone,
        zone_said=zone_said(ground.now.tzinfo, ground.now),
        evidence=evidence,
        draft=by_clocks_of(zone, draft),
        draft_saved_at=kept.saved_at if kept and draft != attempted.draft else None,
        errors=attempted.errors if mine else {},
    )


def correction_of(
    decision: Decision, attempted: Attempted, kept: DecisionDraft | None
) -> CorrectionForm:
    """The form that adds a correction to `decision`, whose hold comes with it."""
    hold = decision.hold
    subject, mine = subject_of(hold), attempted.of == "correct"
    return CorrectionForm(
        url=reverse(f"{PAGES[subject]}_correct", args=[hold.case_id]),
        code=code_of(hold.case_id),
        token=new_token(hold),
        subject=subject,
        what_helps=WAYS_ON.get(DecisionKind(decision.kind), WAY_ON),
        note=attempted.draft.note or drafted(attempted, kept).note,
        typed_code=attempted.draft.code if mine else "",
        errors=attempted.errors if mine else {},
    )


def may_not_decide(hold: Hold, stands: Standing) -> str:
    """Why a person who `stands` so to an open case may not decide it; empty when they may."""
    why = standing.why_not_decide(stands)
    if why != standing.NOT_YOURS:
        return why
    if hold.queue is None:
        return f"{ONLY_OWNERS} No queue takes it: an administrator must set one up."
    owners = owners_of(hold)
    able = [owner for owner in owners if not bar_of(hold, owner)]
    if owners and not able:
        return (
            f"{ONLY_OWNERS} Nor may the owners of {hold.queue.name}: it goes to somebody who may "
            "once it is assigned."
        )
    names = [name_of(owner) for owner in able[:NAMED_OWNERS]]
    who = f": {', '.join(names)}" if names else ""
    return f"{ONLY_OWNERS} The owners of {hold.queue.name} decide it{who}."


def overtaken(attempted: Attempted, now: datetime) -> Overtaken | None:
    """Who or what was first, beside what was typed."""
    first = attempted.overtaken_by
    if first is None:
        return None
    theirs, message = None, str(first)
    if isinstance(first.decision, Decision):
        theirs = recorded(first.decision)
        message = f"{theirs.by} decided before you."
    elif isinstance(first.decision, DecisionProposal):
        theirs = proposed(first.decision)
    draft = attempted.draft
    title = ANSWER if attempted.of == "second" else DECISIONS.get(draft.kind, "No decision")
    return Overtaken(message, theirs, title, draft.note, now, is_kept=attempted.is_kept)
