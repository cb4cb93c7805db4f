"""Answering a proposal: one transaction, checked again on arrival, and told to its run by an event.

An answer is bound to the digest of what was shown. Submitting a form twice answers once. Nobody
approves what they proposed, or what was proposed for them, whichever way they come. An approval
grants nothing by itself: it is checked again just before the write (`services.authorising`).
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import structlog
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now

from workflows.core.boundary.evaluate import approvers, rules_for
from workflows.core.boundary.subjects import is_among
from workflows.core.boundary.verdict import RENEWED_BY_APPROVAL, Verdict
from workflows.core.errors import NotEntitled, ProposalIsOver, UsageError
from workflows.core.events import Incoming
from workflows.core.proposals import (
    APPROVAL_EVENT,
    MAX_NOTE,
    Answer,
    ProposalState,
    ensure_may_end,
)
from workflows.core.sources import Scheme
from workflows.core.words import is_storable, read_length
from workflows.failpoints import failpoint
from workflows.models import Approval, EventSource, Proposal, Run, Tenant
from workflows.services import audit, renewals
from workflows.services.authorising import (
    Asking,
    answers_to,
    approvals_of,
    doing_of,
    groups_of,
    person,
    request_of,
    what_lacks,
)
from workflows.services.clock import database_now
from workflows.services.inbox import lock_matching, receive
from workflows.services.policies import policy_for

log = structlog.get_logger(__name__)

MIN_NOTE = 10  # characters, where an answer needs its reason
NEEDS_NOTE = frozenset({Answer.DENY, Answer.QUESTION})
ENDS = {Answer.DENY: ProposalState.DENIED, Answer.QUESTION: ProposalState.SENT_BACK}


@dataclass(frozen=True)
class Given:
    """What a person has filled in.

    Attributes:
        digest: of the action, as it was shown.
        token: of the form, made when it was shown.
    """

    answer: Answer
    digest: str
    token: UUID
    note: str = ""


# --- a person's answer --------------------------------------------------------------------------


def answer(proposal_id: UUID, user: User, given: Given) -> Approval:
    """Record a person's answer; when it settles the proposal, its run goes on.

    Returns:
        The answer; of a form that was submitted before, the one it recorded then.

    Raises:
        NotEntitled: this person may not answer so; says why.
        ProposalIsOver: it was settled or has run out meanwhile; says how.
        UsageError: the note is missing or too long, or the form is of another action.
    """
    check_note(given)
    proposal = Proposal.objects.only("tenant_id", "run_id").get(pk=proposal_id)
    failpoint("before_approval")
    with transaction.atomic():
        proposal = locked(proposal)
        before = Approval.objects.filter(token=given.token).first()
        if before is not None:
            return same_form(before, proposal, user)
        ensure_answerable(proposal, given)
        ensure_entitled(proposal, user, given.answer)
        row = write(proposal, user, given)
        follow(proposal, row)
        detail = {"answer": str(given.answer), "state": str(proposal.state)}
        audit.record(audit.actor_of(user), "answered", f"proposal:{proposal.pk}", **detail)
    failpoint("after_approval")
    log.info("proposal.answered", proposal=str(proposal.pk), answer=str(given.answer))
    return row


def check_note(given: Given) -> None:
    note = given.note.strip()
    if given.answer in NEEDS_NOTE and read_length(note) < MIN_NOTE:
        raise UsageError(f"note: Write at least {MIN_NOTE} characters: why, or what you ask.")
    if not is_storable(note, MAX_NOTE):
        raise UsageError(f"note: Plain text of {MAX_NOTE:,} characters at most.")


def locked(proposal: Proposal) -> Proposal:
    """Lock what an event of it is matched under, its run and the proposal, in that order."""
    lock_matching(proposal.tenant_id, [APPROVAL_EVENT], str(proposal.pk))
    Run.objects.select_for_update(no_key=True).only("pk").get(pk=proposal.run_id)
    rows = Proposal.objects.select_for_update(of=("self",), no_key=True).select_related(
        "tenant", "run"
    )
    return rows.get(pk=proposal.pk)


def same_form(before: Approval, proposal: Proposal, user: User) -> Approval:
    if before.by_id != user.pk or before.proposal_id != proposal.pk:
        raise UsageError("token: This form was used for another answer. Load it again.")
    return before


def ensure_answerable(proposal: Proposal, given: Given) -> None:
    shown = given.digest.encode(errors="replace")
    if not hmac.compare_digest(shown, proposal.parameters_digest.encode()):
        raise UsageError("digest: What you were shown is not what is proposed. Load it again.")
    taken_back = given.answer is Answer.WITHDRAW and proposal.state == ProposalState.APPROVED
    if taken_back and proposal.used_by is not None:
        raise ProposalIsOver("The approval was used already: the write was begun with it.")
    if proposal.state != ProposalState.OPEN and not taken_back:
        raise ProposalIsOver(f"Nothing was recorded of yours: it is {said(proposal)} already.")
    if proposal.expires_at <= database_now():
        raise ProposalIsOver("Nothing was recorded: its time is over.")


def said(proposal: Proposal) -> str:
    last = proposal.answers.order_by("at", "id").last()
    state = str(proposal.state).replace("_", " ")
    return f"{state} by {last.by_name}" if last else state


@dataclass(frozen=True, slots=True)
class Standing:
    """What a person is to a proposal.

    Attributes:
        lacks: why they may answer nothing of the tenant; empty: they may.
        proposed: they asked for it, or it was asked for them.
        others: whom the policy asks in their place; empty: them too.
        approved: their latest answer is an approval.
    """

    lacks: str
    proposed: bool
    others: str
    approved: bool


def standing_to(
    user: User, asking: Asking | None, lacks: str, answers: Sequence[Approval]
) -> Standing:
    """Say what `user` is to the proposal that is asked about.

    Args:
        asking: None: it is not to be approved any more.
        lacks: as `what_lacks` says.
        answers: those given so far, in their order.
    """
    approvals = asking.approvals if asking else None
    mine = [each for each in answers if each.by_id == user.pk]
    return Standing(
        lacks=lacks,
        proposed=approvals is not None and is_among(person(user), approvals.proposers),
        others=asked_others(user, asking) if asking else "",
        approved=bool(mine) and mine[-1].answer == Answer.APPROVE,
    )


def asked_others(user: User, asking: Asking) -> str:
    """The people whom the policy asks, where this one is not among them."""
    rules = rules_for(asking.request, asking.version.policy.document) if asking.version else []
    if not rules or any(not rule.groups for rule in rules):
        return ""
    mine = groups_of(user, asking.version)
    if any(not mine.isdisjoint(rule.groups) for rule in rules):
        return ""
    return "; ".join(approvers(rule) for rule in rules)


def why_not(standing: Standing, kind: Answer) -> str:
    """Why this person may not give this answer, in a sentence; empty: they may."""
    if standing.lacks:
        return f"You may look at this, and not answer it: your account {standing.lacks}."
    if kind is Answer.WITHDRAW:
        return "" if standing.approved else "You have no approval here that could be withdrawn."
    if kind is not Answer.APPROVE:
        return ""
    if standing.proposed:
        return "You have proposed this, or it is yours otherwise: somebody else approves it."
    return f"The policy asks others to approve this: {standing.others}." if standing.others else ""


def ensure_entitled(proposal: Proposal, user: User, kind: Answer) -> None:
    """Raises `NotEntitled`: whichever way this person comes."""
    lacks = what_lacks(user, proposal.tenant)
    answers = answers_to(proposal, user)
    asking = asking_about(proposal, answers=answers)
    why = why_not(standing_to(user, asking, lacks, answers), kind)
    if why:
        raise NotEntitled(why)


def write(proposal: Proposal, user: User, given: Given) -> Approval:
    return Approval.objects.create(
        proposal=proposal,
        answer=given.answer,
        subject=str(person(user)),
        by=user,
        by_name=user.get_full_name() or user.get_username(),
        note=given.note.strip(),
        digest=given.digest,
        token=given.token,
    )


# --- what follows -------------------------------------------------------------------------------


def follow(proposal: Proposal, row: Approval) -> None:
    """End the proposal if this answer settles it, and tell whoever waits for that."""
    target = settled_as(proposal, Answer(row.answer))
    if target is None:
        return
    end_proposal(proposal, target)
    if proposal.root == proposal.pk:
        tell_run(proposal, row)
    elif target is ProposalState.APPROVED:
        renewals.resume(proposal.root, row.by_name)


def settled_as(proposal: Proposal, kind: Answer) -> ProposalState | None:
    """What the proposal becomes by this answer; None: it waits for more."""
    if proposal.state != ProposalState.OPEN:
        return None  # an approval was taken back: the write's own check finds that
    if kind in ENDS:
        return ENDS[kind]
    if kind is Answer.APPROVE and is_enough(proposal):
        return ProposalState.APPROVED
    return None


def end_proposal(proposal: Proposal, target: ProposalState) -> None:
    """Raises `ProposalIsOver`: somebody has ended it before."""
    ensure_may_end(target)
    open_one = Proposal.objects.filter(pk=proposal.pk, state=ProposalState.OPEN)
    if open_one.update(state=target, ended_at=Now()) != 1:
        raise ProposalIsOver
    proposal.state = target
    log.info("proposal.ended", proposal=str(proposal.pk), state=str(target))


def asking_about(
    proposal: Proposal, *, answers: Sequence[Approval] | None = None, rights: bool = True
) -> Asking:
    """The question that the write will be, as far as it is known now.

    Args:
        answers, rights: as `approvals_of`.
    """
    version = policy_for(proposal.tenant_id)
    found = approvals_of(proposal, proposal.tenant, version, answers=answers, rights=rights)
    return Asking(
        request=request_of(proposal, proposal.tenant, doing_of(proposal), version),
        approvals=replace(found, closed=""),
        version=version,
        tenant=proposal.tenant,
        proposal=proposal,
        run=proposal.run_id,
        step=proposal.step,
    )


def is_enough(proposal: Proposal) -> bool:
    verdict = asking_about(proposal).answered(database_now())
    return not lacking(verdict)


def lacking(verdict: Verdict) -> list[str]:
    """What of the approvals is not enough yet, in sentences."""
    failed = [each for each in verdict.findings if not each.passed]
    return [each.said for each in failed if each.check in RENEWED_BY_APPROVAL]


def tell_run(proposal: Proposal, row: Approval) -> None:
    """Send the event that the run waits for, in this transaction."""
    named = {
        "proposal": str(proposal.pk),
        "answer": row.answer,
        "digest": row.digest,
        "run": str(proposal.run_id),
        "step": proposal.step,
    }
    receive(
        Incoming(
            source=source_of(proposal.tenant).pk,
            tenant=proposal.tenant_id,
            event_id=str(row.pk),
            type=APPROVAL_EVENT,
            correlation=str(proposal.pk),
            body=json.dumps(named).encode(),
        )
    )


def source_of(tenant: Tenant) -> EventSource:
    """The internal source by which the console answers a tenant's proposals. It has no secret, so
    nothing comes by it from outside."""
    fields = {
        "name": f"Approvals in the console, {tenant.name}"[:200],
        "tenant": tenant,
        "scheme": Scheme.INTERNAL,
    }
    return EventSource.objects.get_or_create(slug=slug_of(tenant.pk), defaults=fields)[0]


def slug_of(tenant: UUID) -> str:
    return f"approvals-{tenant.hex[-12:]}"
