"""The `approval` kind: people are asked whether an action may be carried out, and a run waits.

- proposing: the author's function says what is wanted; the boundary is asked whether that could be
  allowed at all; the proposal is stored and a wait for its answer opened, in one transaction.
- an answer comes as an event that names the proposal, through the inbox: from the console, which
  has written it down and settled the proposal in the same transaction, or from another system,
  whose answer is written down here, by the worker that the event has woken.
- what the run goes on with is how the proposal ended. The event itself proves nothing: one that
  nobody's answer stands behind changes nothing, and the run waits on.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db.models.functions import Now

from workflows.core.boundary.canonical import action_of, canonical
from workflows.core.boundary.verdict import Verdict
from workflows.core.errors import RomulusError, UsageError
from workflows.core.proposals import (
    APPROVAL_EVENT,
    Approved,
    Asked,
    ProposalState,
    ProposedAction,
    as_plain,
    check_action,
)
from workflows.core.states import WaitState
from workflows.core.steps import ApprovalOptions
from workflows.core.values import to_json
from workflows.core.waits import lock_keys
from workflows.failpoints import failpoint
from workflows.models import Proposal, Tenant, Wait
from workflows.models.ids import new_id
from workflows.sealing import digest, seal
from workflows.services.answers import end_proposal
from workflows.services.answers_elsewhere import take_in_events
from workflows.services.authorising import (
    PROPOSED,
    Asking,
    doing_of,
    record,
    request_of,
    sealed_of,
    subject_named,
)
from workflows.services.claims import Claim
from workflows.services.clock import database_now
from workflows.services.decision_points import ask_point
from workflows.services.failures import after_failure, call
from workflows.services.kinds import Decide, Done, Fail, Hold, Park, Result, fail_or_hold
from workflows.services.policies import policy_for
from workflows.services.run_holds import open_run_hold
from workflows.services.run_view import RunView
from workflows.sql import fetch

log = structlog.get_logger(__name__)

SAID = {
    ProposalState.DENIED: "It was denied",
    ProposalState.SENT_BACK: "It was sent back with a question",
    ProposalState.EXPIRED: "Nobody has settled it in time",
    ProposalState.CANCELLED: "It was given up",
}


def execute_approval(claim: Claim, view: RunView) -> Result:
    """Propose, look at what was answered, or go on with it."""
    proposal = latest(claim)
    if proposal is None or proposal.followed_at is not None:
        # None yet; or its step was held by how it ended, and a person lets it be tried again.
        return proposing(claim, view)
    keys = keys_of(claim.tenant, proposal.pk)
    return Decide(keys, partial(look, claim, proposal.pk))


def options_of(claim: Claim) -> ApprovalOptions:
    assert claim.step.approval is not None, "the decorator sets them"
    return claim.step.approval


def latest(claim: Claim) -> Proposal | None:
    here = Proposal.objects.filter(run_id=claim.run, step=claim.step.name, visit=claim.visit)
    return here.order_by("-id").first()


def keys_of(tenant: UUID, proposal: UUID) -> list[int]:
    return lock_keys(tenant, [APPROVAL_EVENT], str(proposal))


# --- proposing --------------------------------------------------------------------------------


def proposing(claim: Claim, view: RunView) -> Result:
    """Ask the author what is wanted, and the boundary whether it could be."""
    value, problem = call(claim, view)
    if problem is not None:
        return problem
    if not isinstance(value, ProposedAction):
        where = f"step {claim.step.name} ({claim.step.place})"
        said = f"{where} returned {type(value).__name__}, not ProposedAction"
        return after_failure(claim, UsageError(said))
    try:
        check_action(value, options_of(claim).action)
        proposal = described(claim, value)
        asking = asked_about(claim, proposal)
    except RomulusError as error:
        return fail_or_hold(claim, "proposal_refused", str(error))
    verdict = asking.answered(database_now()).before_approval()
    verdict = with_point(claim, asking, verdict) if verdict.allowed else verdict
    if not verdict.allowed:
        return refused(claim, asking, verdict)
    keys = keys_of(claim.tenant, proposal.pk)
    return Decide(keys, partial(propose, claim, proposal, asking, verdict))


def with_point(claim: Claim, asking: Asking, verdict: Verdict) -> Verdict:
    """The same, with what the decision point says that the policy names, if it says anything."""
    said = ask_point(asking.version, asking.request)
    if said is None:
        return verdict
    if not said.answered:
        # Nothing is sent here, so people may be asked. At the write no answer is a no.
        log.warning("proposal.point_silent", run=str(claim.run), said=said.finding.said)
        return verdict
    return verdict.also(said.finding, decision_id=said.decision_id)


def described(claim: Claim, action: ProposedAction) -> Proposal:
    """The proposal as it will be stored. Nothing is written yet."""
    proposal = new_id()
    return Proposal(
        pk=proposal,
        root=proposal,
        run_id=claim.run,
        step=claim.step.name,
        visit=claim.visit,
        tenant_id=claim.tenant,
        action=action.action,
        target=action.target,
        summary=action.summary,
        amount=action.amount,
        currency=action.currency,
        reason=action.reason,
        parameters_sealed=seal(canonical(as_plain(action)), PROPOSED),
        parameters_digest=digest(action_of(action.action, action.parameters)),
        proposed_by=str(subject_named(action.proposed_by, claim.workflow.name)),
        on_behalf_of=action.on_behalf_of,
    )


def asked_about(claim: Claim, proposal: Proposal) -> Asking:
    tenant = Tenant.objects.get(pk=claim.tenant)
    version = policy_for(claim.tenant)
    return Asking(
        request=request_of(proposal, tenant, doing_of(proposal), version),
        approvals=None,
        version=version,
        tenant=tenant,
        run=claim.run,
        step=claim.step.name,
    )


def refused(claim: Claim, asking: Asking, verdict: Verdict) -> Fail | Hold:
    """The policy would not allow it whoever approved: nobody is asked."""
    message = f"Nobody was asked: {verdict.reason} {verdict.helps}"
    found = fail_or_hold(claim, "not_permitted", message)

    def recorded() -> None:
        record(asking, verdict, Asked.PROPOSAL)
        if isinstance(found, Hold):
            open_run_hold(claim, found.reason, found.message)

    return replace(found, also=recorded)


def propose(claim: Claim, proposal: Proposal, asking: Asking, verdict: Verdict) -> Result | None:
    """Store the proposal and open the wait for its answer, under the lock."""
    proposal.created_at = database_now()
    proposal.expires_at = proposal.created_at + options_of(claim).expires_in
    proposal.save(force_insert=True)
    if asking.version is not None:
        record(replace(asking, proposal=proposal), verdict, Asked.PROPOSAL)
    log.info("proposal.made", proposal=str(proposal.pk), run=str(claim.run), step=claim.step.name)
    return wait_on(claim, proposal)


# --- what comes of it -------------------------------------------------------------------------


def look(claim: Claim, proposal_id: UUID) -> Result | None:
    """Take in what was answered elsewhere, and say how the run goes on. The caller has the locks
    and the run."""
    proposal = Proposal.objects.select_for_update(no_key=True).get(pk=proposal_id)
    if proposal.state == ProposalState.OPEN:
        take_in_events(proposal)
    if proposal.state == ProposalState.OPEN:
        return wait_on(claim, proposal)
    return followed(claim, proposal)


def wait_on(claim: Claim, proposal: Proposal) -> Result | None:
    """Wait for an answer until the proposal runs out; None: one has come just now."""
    wait = open_wait_of(claim) or open_wait(claim, proposal)
    rows = fetch("take_events", {"wait": wait, "matches": [new_id()]})
    if not rows or rows[0]["state"] == WaitState.RESOLVED:
        return None
    if rows[0]["state"] == WaitState.EXPIRED:
        end_proposal(proposal, ProposalState.EXPIRED)
        return followed(claim, proposal)
    until = f"{proposal.expires_at:%Y-%m-%d %H:%M:%S} UTC"
    message = f"It waits for somebody to approve or deny, until {until}: {proposal.summary}."
    return Park("event", message, wake_at=proposal.expires_at)


def open_wait_of(claim: Claim) -> UUID | None:
    waits = Wait.objects.filter(run_id=claim.run, state=WaitState.WAITING)
    return waits.values_list("pk", flat=True).first()


def open_wait(claim: Claim, proposal: Proposal) -> UUID:
    wait = new_id()
    fetch(
        "open_wait",
        {
            "wait": wait,
            "run": claim.run,
            "step": claim.step.name,
            "visit": claim.visit,
            "tenant": claim.tenant,
            "types": [APPROVAL_EVENT],
            "correlation": str(proposal.pk),
            "deadline": proposal.expires_at,
            "within": None,
            "needed": 1,
            "shared": False,
        },
    )
    failpoint("wait_opened", claim.step.name)
    return wait


def followed(claim: Claim, proposal: Proposal) -> Result:
    """How the run goes on, by how the proposal ended; it goes on so once."""
    state = ProposalState(proposal.state)
    Proposal.objects.filter(pk=proposal.pk, followed_at=None).update(followed_at=Now())
    options = options_of(claim)
    match state:
        case ProposalState.APPROVED:
            return Done(output_of(claim, proposal))
        case ProposalState.DENIED:
            way = options.on_denied
        case ProposalState.SENT_BACK:
            way = options.on_question
        case ProposalState.EXPIRED:
            way = options.on_expired
        case _:
            way = "hold"
    message = f"{SAID[state]}: {proposal.summary}.{said_by(proposal)}"
    match way:
        case "fail":
            return Fail(str(state), message)
        case "hold":
            return Hold(str(state), message)
        case "continue":
            return Done(output_of(claim, proposal))
        case _:
            return Done(output_of(claim, proposal), goto=way)


def said_by(proposal: Proposal) -> str:
    """Who settled it, and what they wrote."""
    last = proposal.answers.order_by("at", "id").last()
    if last is None:
        return ""
    return f" {last.by_name}: {last.note}" if last.note else f" By {last.by_name}."


def output_of(claim: Claim, proposal: Proposal) -> Any:
    answers = list(proposal.answers.order_by("at", "id"))
    plain = sealed_of(proposal)
    action = ProposedAction(
        action=proposal.action,
        target=proposal.target,
        parameters=plain["parameters"],
        summary=proposal.summary,
        amount=proposal.amount,
        currency=proposal.currency,
        precondition=plain["precondition"],
        reason=proposal.reason,
        proposed_by=proposal.proposed_by,
        on_behalf_of=proposal.on_behalf_of,
    )
    approved = Approved(
        proposal=proposal.pk,
        answer=str(proposal.state),
        action=action,
        by=[answer.by_name for answer in answers],
        note=answers[-1].note if answers else "",
    )
    return to_json(
        approved,
        claim.step.returns,
        limit=settings.ROMULUS_MAX_OUTPUT_BYTES,
        what=f"output of step {claim.step.name}",
    )
