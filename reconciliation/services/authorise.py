"""The authorisation boundary at the moment of the write (promise P11).

A checkpoint grants nothing: whatever was approved, and whenever, counts only if it counts now. So
the executor asks twice over: first elsewhere, what must be true before the write and an external
decision point, which are calls over the network; then, inside the last transaction before a byte
leaves, the built-in boundary, whose facts are read there and whose approval is used there.

A write without a policy and without an approval step is allowed, and nothing is recorded of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self
from uuid import UUID

import structlog
from django.db.models import Q, QuerySet, Subquery
from django.db.models.functions import Now

from reconciliation.adapters.base import Prepared, Unavailable
from reconciliation.core.contracts import Contract
from reconciliation.core.errors import AuthorisationLapsed, DecisionPointUnasked
from reconciliation.core.facts import HOLD_SENTENCES, HoldReason
from reconciliation.core.states import HoldState, OperationState, TransmissionState
from reconciliation.models import Hold, Operation
from reconciliation.sealing import unseal
from reconciliation.services.audit import actors_of
from reconciliation.services.decision_points import ask_decision_point
from reconciliation.services.providers import adapter_of
from workflows.core.boundary.requests import Approvals, Request
from workflows.core.boundary.subjects import Subject, SubjectType
from workflows.core.boundary.verdict import Check, Finding, Verdict
from workflows.core.proposals import Asked, ProposalState
from workflows.models import Approval, PolicyVersion, Proposal, Tenant
from workflows.services.authorising import (
    Asking,
    Doing,
    approvals_of,
    chain_of,
    give_groups,
    in_order,
    line_of,
    proposers_among,
    record,
    request_by,
    request_of,
)
from workflows.services.claims import Claim
from workflows.services.clock import database_now
from workflows.services.policies import policies_for, policy_for
from workflows.services.runs import STARTED
from workflows.together import together

log = structlog.get_logger(__name__)

UNPROVEN = (
    TransmissionState.SENDING,
    TransmissionState.UNKNOWN,
    TransmissionState.ACKNOWLEDGED,
)
LAPSED = HoldReason.AUTHORISATION_LAPSED
ANOTHER_STEP = "Otherwise than proposed: the step, which is to be {!r}."
NEVER = "It was never proposed, and needs an approval."


@dataclass(frozen=True)
class Elsewhere:
    """What was asked over the network, and under which policy."""

    findings: tuple[Finding, ...] = ()
    decision_id: str = ""
    policy: UUID | None = None
    point: str = ""  # the decision point that was asked


NOT_ASKED = Elsewhere()


@dataclass(frozen=True)
class Lapse:
    """The boundary's no to a write, and the question for the record."""

    asking: Asking
    verdict: Verdict

    @property
    def precondition_alone(self) -> bool:
        """Everything else allows it; what had to be true before it is not."""
        failed = {each.check for each in self.verdict.findings if not each.passed}
        return failed == {Check.PRECONDITION}

    def said(self, may_have_effect: bool) -> str:
        """For people: which check failed, who can renew it, and what is not known."""
        reason = HoldReason.PRECONDITION_GONE if self.precondition_alone else LAPSED
        parts = [HOLD_SENTENCES[reason].known, self.verdict.reason, f"Helps: {self.verdict.helps}"]
        if may_have_effect:
            parts.append("What was sent before may have happened once, or not at all.")
        return " ".join(parts)


# --- elsewhere, before the transaction ----------------------------------------------------------


def read_before(operation: Operation, contract: Contract) -> Elsewhere:
    """Read what must be true before the write. What cannot be read is a no."""
    prepared = Prepared.from_bytes(unseal(operation.request_sealed))
    # Once something may have had its effect, that effect may be what changed the state.
    if not prepared.expected or may_have_effect(operation):
        return NOT_ASKED
    return Elsewhere((precondition(operation, contract, prepared),))


def ask_elsewhere(
    operation: Operation, unasked: DecisionPointUnasked, before: Elsewhere
) -> Elsewhere:
    """Ask the decision point that the policy names; no answer is a no."""
    prepared = Prepared.from_bytes(unseal(operation.request_sealed))
    version = PolicyVersion.objects.get(pk=unasked.policy)
    request = request_for(operation, prepared, None, version)
    said = ask_decision_point(unasked.point, request)
    findings = (*before.findings, said.finding)
    return Elsewhere(findings, said.decision_id, unasked.policy, unasked.point)


def may_have_effect(operation: Operation) -> bool:
    return operation.transmissions.filter(state__in=UNPROVEN).exists()


def precondition(operation: Operation, contract: Contract, prepared: Prepared) -> Finding:
    adapter = adapter_of(operation.provider, contract)
    try:
        found = adapter.read_before(prepared, contract.timeout.total_seconds())
    except Exception as error:
        log.exception("precondition.crashed", operation=str(operation.pk))
        found = Unavailable(f"the adapter broke ({type(error).__name__})")
    if isinstance(found, Unavailable):
        said = f"What must be true before it could not be read: {found.detail}."
        return Finding(Check.PRECONDITION, False, said)
    said = f"What must be true before it, just read: {found.detail}."
    return Finding(Check.PRECONDITION, found.met, said)


# --- in the last transaction --------------------------------------------------------------------


def authorise(operation: Operation, claim: Claim, elsewhere: Elsewhere, now: datetime) -> None:
    """Allow this very write now, record that and use its approval; in the caller's transaction,
    which holds the run and the lock that whoever changes a policy takes alone.

    Raises:
        AuthorisationLapsed: it is not allowed; carries which check failed, for the record.
        DecisionPointUnasked: the policy in force names one that was not asked under it.
    """
    version = policy_for(claim.tenant)
    point = version.policy.document.decision_point if version else ""
    if version and point and (version.pk, point) != (elsewhere.policy, elsewhere.point):
        raise DecisionPointUnasked(point, version.pk)
    named = claim.step.write.approved_by if claim.step.write else ""
    proposal = proposal_for(operation)
    if version is None and not named and proposal is None and not elsewhere.findings:
        return
    asking = asking_for(operation, version, proposal)
    verdict = asking.answered(now)
    if named and proposal is None:
        verdict = verdict.also(Finding(Check.PROPOSAL, False, NEVER))
    elif named and proposal is not None and proposal.step != named:
        verdict = verdict.also(Finding(Check.ACTION, False, ANOTHER_STEP.format(named)))
    verdict = verdict.also(*elsewhere.findings, decision_id=elsewhere.decision_id)
    if verdict.allowed and proposal is not None and not use(proposal, operation):
        finding = Finding(Check.USED, False, "Another write has used the approval just now.")
        verdict = verdict.also(finding)
    if not verdict.allowed:
        raise AuthorisationLapsed(Lapse(asking, verdict))
    record(asking, verdict, Asked.WRITE)


@dataclass(frozen=True)
class Approved:
    """What the boundary looks at of a write that was approved, as it was read at `now`.

    Attributes:
        chain: the proposals that ask for it, the latest first, which is the one that counts.
        answers: to that one, in their order.
        started_by: who has started its run, or one that it descends from.
    """

    version: PolicyVersion | None
    chain: Sequence[Proposal]
    answers: Sequence[Approval]
    started_by: Sequence[str]
    now: datetime

    @classmethod
    def read(cls, lists: Sequence[Sequence[Any]], now: datetime) -> Self:
        """Of the rows of `approved_lists`, read at `now`."""
        policies, chain, answers, started_by = lists
        return cls(next(iter(policies), None), chain, answers, started_by, now)

    @property
    def proposal(self) -> Proposal | None:
        return self.chain[0] if self.chain else None


def approved_lists(operation: Operation) -> tuple[QuerySet[Any, Any], ...]:
    """What `Approved` is read from, together with other lists."""
    first = Proposal.objects.none()
    if operation.proposal_id is not None:
        first = Proposal.objects.filter(pk=operation.proposal_id)
    chain = chain_of(Subquery(first.values("root")[:1]))
    latest = Subquery(chain.values("pk")[:1])
    return (
        policies_for(operation.run.tenant_id)[:1],
        chain,
        in_order(Approval.objects.filter(proposal=latest)),
        actors_of(STARTED, line_of(operation.run_id)),
    )


def still_lapsed(
    operation: Operation, holds: Sequence[Hold] | None = None, approved: Approved | None = None
) -> bool:
    """Whether what the operation is held for stands as far as the built-in boundary says now, so
    that sending it again would only hold it again. What others say is asked at the write.

    Args:
        holds: those of the operation, where they were read already.
        approved: what it was approved with, where that was.
    """
    if operation.state != OperationState.HELD:
        return False
    if holds is None:
        holds = list(operation.holds.filter(state=HoldState.OPEN))
    if not any(hold.state == HoldState.OPEN and hold.reason == LAPSED for hold in holds):
        return False
    if approved is None:
        approved = Approved.read(together(*approved_lists(operation)), database_now())
    give_groups(approved.answers)
    asking = asking_for(operation, approved.version, approved.proposal, approved)
    return not asking.answered(approved.now).allowed


def proposal_for(operation: Operation) -> Proposal | None:
    """The proposal that counts for it now, locked: the latest that asks for the same."""
    if operation.proposal_id is None:
        return None
    root = Proposal.objects.values_list("root", flat=True).get(pk=operation.proposal_id)
    rows = Proposal.objects.select_for_update(of=("self",), no_key=True).filter(root=root)
    return rows.order_by("-id")[0]


def asking_for(
    operation: Operation,
    version: PolicyVersion | None,
    proposal: Proposal | None,
    approved: Approved | None = None,
) -> Asking:
    tenant = operation.run.tenant
    prepared = Prepared.from_bytes(unseal(operation.request_sealed))
    return Asking(
        request=request_for(operation, prepared, proposal, version, tenant),
        approvals=bound_to(operation, proposal, prepared, version, approved) if proposal else None,
        version=version,
        tenant=tenant,
        proposal=proposal,
        run=operation.run_id,
        step=operation.step,
        operation=operation.pk,
    )


def request_for(
    operation: Operation,
    prepared: Prepared,
    proposal: Proposal | None,
    version: PolicyVersion | None,
    tenant: Tenant | None = None,
) -> Request:
    """What the boundary is asked about a write: what will leave, by whoever wants it."""
    tenant = tenant or Tenant.objects.get(pk=operation.run.tenant_id)
    if proposal is None and operation.proposal_id is not None:
        proposal = Proposal.objects.get(pk=operation.proposal_id)
    if proposal is not None:
        return request_of(proposal, tenant, doing(operation, prepared), version)
    workflow = Subject(SubjectType.WORKFLOW, operation.run.workflow)
    return request_by(workflow, tenant, doing(operation, prepared), version)


def doing(operation: Operation, prepared: Prepared) -> Doing:
    return Doing(
        operation.action,
        operation.target,
        prepared.parameters,
        operation.amount,
        operation.currency,
        prepared.expected,
    )


def bound_to(
    operation: Operation,
    proposal: Proposal,
    prepared: Prepared,
    version: PolicyVersion | None,
    approved: Approved | None,
) -> Approvals:
    """The approvals as they count for this operation: of its own run and tenant alone."""
    run = operation.run
    found = approvals_of(
        proposal,
        run.tenant,
        version,
        doing(operation, prepared),
        operation.pk,
        answers=approved.answers if approved else None,
        proposers=proposers_among(approved.chain, approved.started_by) if approved else None,
    )
    elsewhere = [
        name
        for name, same in (
            ("the run", proposal.run_id in (run.pk, run.parent_id)),
            ("the tenant", proposal.tenant_id == run.tenant_id),
        )
        if not same
    ]
    return replace(found, changed=(*found.changed, *elsewhere))


def use(proposal: Proposal, operation: Operation) -> bool:
    """Use the approval for this operation, once and for all; False when another one has."""
    if proposal.used_by == operation.pk:
        return True
    free = Q(pk=proposal.pk, used_by=None, state=ProposalState.APPROVED)
    return Proposal.objects.filter(free).update(used_by=operation.pk, used_at=Now()) == 1
