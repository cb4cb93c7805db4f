"""One proposal in words for whoever answers for what it does."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.urls import reverse

from workflows.approval_pages import (
    AnswerChoice,
    AnswerForm,
    AnswerGiven,
    CheckLine,
    ProposalPage,
    RecordLine,
)
from workflows.core.boundary.canonical import Difference, differences, leaves, shown
from workflows.core.boundary.subjects import Subject
from workflows.core.boundary.verdict import Verdict
from workflows.core.proposals import Answer, Asked, ProposalState
from workflows.core.words import seen
from workflows.models import Approval, AuthorisationRecord, Proposal
from workflows.pages import Fact, Link
from workflows.selectors.approvals import url_of
from workflows.selectors.words import heading, money
from workflows.services import renewals
from workflows.services.answers import Standing, asking_about, standing_to, why_not
from workflows.services.authorising import give_groups, in_order, sealed_of
from workflows.together import together

RECORDS = 20
LINES = 200  # values of one action that are shown
TITLES = {
    Answer.APPROVE: (
        "Approve it",
        "It may be carried out once, exactly as shown, until it runs out. Just before that, "
        "everything is checked again.",
    ),
    Answer.DENY: ("Deny it", "Nothing is sent. The run goes on as its workflow says for a no."),
    Answer.QUESTION: (
        "Send it back with a question",
        "Nothing is sent. Whoever answers for the run reads the question and proposes anew.",
    ),
    Answer.WITHDRAW: ("Take your approval back", "It counts no more, unless it was used already."),
}
LEADS = {
    ProposalState.OPEN: "It waits for an answer. Nothing was sent.",
    ProposalState.APPROVED: "It was approved. That is checked again just before it is sent.",
    ProposalState.DENIED: "It was denied. Nothing was sent.",
    ProposalState.SENT_BACK: "It was sent back with a question. Nothing was sent.",
    ProposalState.EXPIRED: "Nobody settled it in time. Nothing was sent for it.",
    ProposalState.CANCELLED: "Its run ended or went on without it. Nothing was sent for it.",
}
LAPSED = "The write that it was for is held: the boundary did not allow it. Nothing was sent then."
LAPSED_HELPS = "What the last check below names; where an approval is enough, asking for it again."
ASKED = {
    Asked.PROPOSAL: "When it was proposed",
    Asked.WRITE: "Just before the write",
    Asked.SERVED: "When another system asked",
}


def proposal_page(
    proposal: Proposal,
    user: User,
    now: datetime,
    *,
    rights: Collection[str],
    typed: Mapping[str, str] | None = None,
    errors: dict[str, str] | None = None,
    overtaken: str = "",
) -> ProposalPage:
    """The page of a proposal that `user` may see, which comes with its tenant and run.

    Args:
        rights: what this person may do with the tenant.
    """
    state = ProposalState(proposal.state)
    answers, earlier, records = together(
        in_order(proposal.answers.all()), proposed_before(proposal), records_of(proposal)
    )
    give_groups(answers, user)
    payloads = "view_payloads" in rights
    asks = state is ProposalState.OPEN
    asking = asking_about(proposal, answers=answers, rights=False) if asks else None
    lacks = "" if "approve_actions" in rights else f"may not approve for {proposal.tenant.name}"
    standing = standing_to(user, asking, lacks, answers)
    form, why_no_form = form_of(proposal, now, standing, typed or {}, errors or {})
    verdict = asking.answered(now) if asking else None
    lapsed = not asks and proposal.root in renewals.wanted([proposal.root])
    again = reverse("approval_again", args=[proposal.pk])
    before = next(iter(earlier), None)
    plain = sealed_of(proposal)
    return ProposalPage(
        id=proposal.pk,
        url=url_of(proposal),
        title=seen(proposal.summary),
        state=state,
        lead=LAPSED if lapsed else lead_of(proposal, state, now),
        helps=LAPSED_HELPS if lapsed else helps_of(state, verdict),
        facts=facts_of(proposal),
        run=Link(heading(proposal.run), reverse("run", args=[proposal.run_id])),
        expires_at=proposal.expires_at,
        parameters=as_lines(plain["parameters"]) if payloads else None,
        before=said_before(before, now) if before else "",
        differences=differing(before, proposal, plain, payloads) if before else (),
        answers=tuple(given(answer) for answer in answers),
        checks=lines_of(verdict) if verdict else (),
        records=tuple(record_line(row) for row in records),
        form=form,
        why_no_form=why_no_form,
        again_url=again if lapsed and "control_runs" in rights else "",
        overtaken=overtaken,
    )


def lead_of(proposal: Proposal, state: ProposalState, now: datetime) -> str:
    if proposal.used_by is not None:
        return "It was approved, and the write was begun with it."
    if state is ProposalState.APPROVED and proposal.expires_at <= now:
        return "It was approved, and ran out before it was carried out. It counts no more."
    if state is ProposalState.OPEN and proposal.expires_at <= now:
        return "Its time is over, and nobody settled it. Nothing was sent."
    return LEADS[state]


def helps_of(state: ProposalState, verdict: Verdict | None) -> str:
    if verdict is None:
        return "Nothing is needed here." if state is ProposalState.APPROVED else "A new proposal."
    failed = verdict.failed
    if failed is None:
        return "An answer that settles it."
    helps = f"An answer of {verdict.renewers}." if verdict.renewable else verdict.helps
    return f"{failed.said} {helps}"


def facts_of(proposal: Proposal) -> tuple[Fact, ...]:
    """Who wants what, in the words of a business owner; what is empty is left out."""
    behalf, asked = proposal.on_behalf_of, proposal.asked_by
    named = (
        ("Amount", money(proposal.amount, proposal.currency)),
        ("Target", proposal.target),
        ("Proposed by", Subject.parse(proposal.proposed_by).title),
        ("On behalf of", Subject.parse(behalf).title if behalf else ""),
        ("Asked again by", Subject.parse(asked).title if asked else ""),
        ("Why", proposal.reason),
        ("For", proposal.tenant.name),
    )
    facts = tuple(Fact(term, seen(text)) for term, text in named if text)
    return (*facts, Fact("Action", proposal.action, code=True))


# --- what was asked before ----------------------------------------------------------------------


def proposed_before(proposal: Proposal) -> QuerySet[Proposal]:
    """What the same step of the same run has proposed before this one, if anything; the latest."""
    earlier = Proposal.objects.filter(run=proposal.run_id, step=proposal.step, pk__lt=proposal.pk)
    return earlier.order_by("-pk")[:1]


def said_before(before: Proposal, now: datetime) -> str:
    """Also that a write was begun with it: to approve the same again is to do it twice."""
    return f"{seen(before.summary)}. {lead_of(before, ProposalState(before.state), now)}"


def differing(
    before: Proposal, proposal: Proposal, plain: dict[str, Any], payloads: bool
) -> tuple[Difference, ...]:
    """From what was proposed before to this; the parameters for those who may see them."""
    named = ("target", "summary", "reason")
    old = {name: getattr(before, name) for name in named}
    new = {name: getattr(proposal, name) for name in named}
    old["amount"] = money(before.amount, before.currency)
    new["amount"] = money(proposal.amount, proposal.currency)
    if payloads:
        old |= {"parameters": sealed_of(before)["parameters"]}
        new |= {"parameters": plain["parameters"]}
    return bounded(differences(old, new))


def as_lines(parameters: Any) -> tuple[Difference, ...]:
    return bounded([Difference(path, None, shown(value)) for path, value in leaves(parameters)])


def bounded(lines: list[Difference]) -> tuple[Difference, ...]:
    """The first `LINES`, and how many more there are: nobody is to think that they saw it all."""
    more = len(lines) - LINES
    if more <= 0:
        return tuple(lines)
    return (*lines[:LINES], Difference("…", None, f"{more:,} more, which are not shown here"))


# --- answers and checks -------------------------------------------------------------------------


def given(answer: Approval) -> AnswerGiven:
    return AnswerGiven(answer.answer, answer.by_name, answer.at, answer.note)


def lines_of(verdict: Verdict) -> tuple[CheckLine, ...]:
    return tuple(
        CheckLine("passed" if each.passed else "failed", each.said) for each in verdict.findings
    )


def records_of(proposal: Proposal) -> QuerySet[AuthorisationRecord]:
    return AuthorisationRecord.objects.filter(proposal=proposal).order_by("-id")[:RECORDS]


def record_line(row: AuthorisationRecord) -> RecordLine:
    checks = tuple(
        CheckLine("passed" if each["passed"] else "failed", each["said"]) for each in row.findings
    )
    state = "allowed" if row.allowed else "denied"
    return RecordLine(state, row.at, f"{ASKED[Asked(row.asked)]}: {row.reason}", checks)


def form_of(
    proposal: Proposal,
    now: datetime,
    standing: Standing,
    typed: Mapping[str, str],
    errors: dict[str, str],
) -> tuple[AnswerForm | None, str]:
    """The form, or why there is none."""
    is_open = proposal.state == ProposalState.OPEN
    can_take_back = proposal.state == ProposalState.APPROVED and proposal.used_by is None
    if proposal.expires_at <= now or not (is_open or can_take_back):
        return None, ""
    kinds = [Answer.APPROVE, Answer.DENY, Answer.QUESTION] if is_open else []
    if standing.approved:
        kinds.append(Answer.WITHDRAW)
    choices = tuple(AnswerChoice(kind, *TITLES[kind], why_not(standing, kind)) for kind in kinds)
    if not any(not choice.why_not for choice in choices):
        return None, choices[0].why_not if choices else ""
    form = AnswerForm(
        digest=proposal.parameters_digest,
        token=uuid4(),
        choices=choices,
        chosen=typed.get("answer", ""),
        note=typed.get("note", ""),
        errors=errors,
    )
    return form, ""
