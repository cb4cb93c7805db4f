"""Decisions that take two people, in words: who proposes, who confirms, what has changed since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.contrib.auth.models import User
from django.urls import reverse

from reconciliation import access
from reconciliation.core import standing
from reconciliation.core.standing import Standing
from reconciliation.core.states import DecisionKind, ProposalEndKind
from reconciliation.decision_pages import (
    DecisionOption,
    Need,
    ProposalEnded,
    ProposalShown,
    VerdictForm,
)
from reconciliation.models import DecisionProposal, Hold
from reconciliation.selectors.attempts import PAGES, Attempted, new_token, subject_of
from reconciliation.selectors.words import DECISIONS, name_of
from reconciliation.services.answers import code_of
from reconciliation.services.offers import Ground, needs_second
from reconciliation.services.proposals import why_void
from workflows.core.words import listed

NAMED = 5
NOBODY = "nobody else may confirm here yet: an administrator gives the right “second” on the queue"
ONLY_ANEW = "Somebody who may decide here can propose anew."
UNCHANGED = "What is known is as it was when it was proposed."


@dataclass(frozen=True)
class Seconds:
    """Who may confirm what a person proposes; asked only where a queue takes two at all."""

    names: tuple[str, ...] = ()

    @property
    def in_words(self) -> str:
        return f"{listed(list(self.names))} may confirm it" if self.names else NOBODY


def seconds_of(hold: Hold | None, user: User) -> Seconds:
    if hold is None or hold.queue is None:
        return Seconds()
    if hold.queue.approvals_needed < 2 and hold.queue.second_from is None:  # noqa: PLR2004
        return Seconds()
    others = access.other_seconds(user, hold.queue)
    names = [name_of(each) for each in others[:NAMED]]
    more = len(others) - len(names)
    return Seconds((*names, f"{more} more") if more else tuple(names))


def for_two(option: DecisionOption, hold: Hold | None, seconds: Seconds) -> DecisionOption:
    """An option as it reads where somebody else must confirm it."""
    if hold is None or not needs_second(hold, DecisionKind(option.kind)):
        return option
    return replace(
        option,
        takes_two=True,
        button=option.button.replace("Record:", "Propose:", 1),
        needs=(*option.needs, Need("Then a second person", met=False, detail=seconds.in_words)),
        then=("Nothing moves until somebody else confirms it.", *option.then),
    )


def proposal_shown(
    ground: Ground,
    options: Sequence[DecisionOption],
    attempted: Attempted,
    stands: Standing,
) -> ProposalShown | None:
    """The open proposal of a hold, whose queue and operation come with it, as it is shown to
    somebody who `stands` so to the hold."""
    hold, proposal = ground.hold, ground.hold.proposal
    if proposal is None:
        return None
    void = why_void(ground, proposal)
    option = next((each for each in options if each.kind == proposal.kind), None)
    may_settle = not void and not standing.why_not_confirm(stands)
    form = None
    if may_settle or stands.proposed:
        form = verdict_form(hold, "settle" if may_settle else "withdraw", attempted)
    return ProposalShown(
        title=DECISIONS.get(proposal.kind, proposal.kind),
        consequence=option.consequence if option else "",
        then=option.then[1:] if option and option.takes_two else (),
        warning=option.warning if option else "",
        note=proposal.note,
        resource=proposal.resource,
        by=proposal.by_name,
        at=proposal.at,
        since=f"It cannot be confirmed any more. {void}" if void else UNCHANGED,
        is_void=bool(void),
        is_yours=stands.proposed,
        not_yours="" if form else standing.why_not_confirm(stands) or ONLY_ANEW,
        seconds=seconds_of(hold, proposal.by).names,
        form=form,
    )


def ended_before(hold: Hold, proposals: Sequence[DecisionProposal]) -> ProposalEnded | None:
    """What was proposed last on `hold`, where it was refused or became void: whoever decides anew
    reads why. `proposals` come with their ends, the oldest first."""
    last = next((row for row in reversed(proposals) if row.hold_id == hold.pk), None)
    end = getattr(last, "end", None)
    if last is None or end is None or hold.proposal_id is not None:
        return None
    title = DECISIONS.get(last.kind, last.kind)
    match end.kind:
        case ProposalEndKind.REFUSED:
            says = f"{end.by_name} refused what {last.by_name} proposed: “{title}”."
            return ProposalEnded(says, f"“{end.note}”", end.at)
        case ProposalEndKind.VOID:
            says = f"What {last.by_name} proposed became void: “{title}”."
            return ProposalEnded(says, end.note, end.at)
    return None


def verdict_form(hold: Hold, may: str, attempted: Attempted) -> VerdictForm:
    assert hold.proposal is not None
    mine = attempted if attempted.of == "second" else Attempted()
    title = DECISIONS.get(hold.proposal.kind, hold.proposal.kind)
    return VerdictForm(
        url=reverse(f"{PAGES[subject_of(hold)]}_second", args=[hold.case_id]),
        may="settle" if may == "settle" else "withdraw",
        code=code_of(hold.case_id),
        version=hold.version,
        token=new_token(hold),
        button=f"Confirm and record: {title[:1].lower()}{title[1:]}",
        note=mine.draft.note,
        typed_code=mine.draft.code,
        errors=mine.errors,
    )
