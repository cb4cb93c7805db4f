"""Asking the built-in boundary: the facts read, the pure answer, and its record.

The facts are read where the answer counts: at the proposal, and in the last transaction before a
write (promise P11). An allow is recorded in that transaction, so it costs no commit; a deny in the
one that holds the run for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import (
    CharField,
    Func,
    OuterRef,
    QuerySet,
    Subquery,
    Value,
    prefetch_related_objects,
)
from django.db.models.expressions import RawSQL

from workflows.core.boundary.canonical import action_of, amount_text, read_back
from workflows.core.boundary.evaluate import evaluate
from workflows.core.boundary.requests import Approvals, Given, Request
from workflows.core.boundary.subjects import Subject, SubjectType
from workflows.core.boundary.verdict import Verdict
from workflows.core.proposals import Answer, Asked, ProposalState
from workflows.core.words import who
from workflows.models import (
    Approval,
    AuthorisationRecord,
    PolicyVersion,
    Proposal,
    ServiceAccount,
    Tenant,
)
from workflows.rights import holds, read_rights
from workflows.sealing import digest, has_digest, seal, unseal
from workflows.services import audit
from workflows.services.runs import STARTED

PROPOSED = b"proposal"  # the purposes that these are sealed for
ASKED = b"authorisation"
LARGEST_KEPT = 64 * 1024  # bytes of one question that are kept for trying other policies

CLOSED = {
    ProposalState.OPEN: "not settled yet",
    ProposalState.APPROVED: "",
    ProposalState.DENIED: "denied",
    ProposalState.SENT_BACK: "sent back with a question",
    ProposalState.EXPIRED: "not settled in time",
    ProposalState.CANCELLED: "given up with its run",
}
LINE = """
    WITH RECURSIVE line AS (
        SELECT id, parent_id FROM workflows_run WHERE id = %s
        UNION ALL
        SELECT above.id, above.parent_id FROM workflows_run above
        JOIN line ON above.id = line.parent_id
    )
    SELECT 'run:' || id FROM line
"""
APPROVE_RIGHT = "workflows.approve_actions"


# --- the facts ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Doing:
    """An action that is about to be carried out, as it will leave."""

    action: str
    target: str
    parameters: Mapping[str, Any]
    amount: Any
    currency: str
    precondition: Mapping[str, Any]


def request_of(
    proposal: Proposal, tenant: Tenant, doing: Doing, version: PolicyVersion | None
) -> Request:
    """What the boundary is asked about `doing`, by whoever has proposed it."""
    behalf = Subject.parse(proposal.on_behalf_of) if proposal.on_behalf_of else None
    return request_by(Subject.parse(proposal.proposed_by), tenant, doing, version, behalf)


def request_by(
    subject: Subject,
    tenant: Tenant,
    doing: Doing,
    version: PolicyVersion | None,
    on_behalf_of: Subject | None = None,
) -> Request:
    active, groups = standing_of(subject, version)
    return Request(
        subject=subject,
        action=doing.action,
        tenant=tenant.slug,
        parameters=dict(doing.parameters),
        target=doing.target,
        amount=doing.amount,
        currency=doing.currency,
        on_behalf_of=on_behalf_of,
        groups=groups,
        active=active,
    )


def standing_of(subject: Subject, version: PolicyVersion | None) -> tuple[bool, frozenset[str]]:
    """Whether the subject may act at all, and the groups of a person, as the policy means them.

    An agent or a service account that is not set up here may not.
    """
    match subject.type:
        case SubjectType.PERSON:
            user = User.objects.filter(username=subject.id, is_active=True).first()
            return user is not None, groups_of(user, version) if user else frozenset()
        case SubjectType.AGENT | SubjectType.SERVICE:
            known = ServiceAccount.objects.filter(kind=subject.type, slug=subject.id, active=True)
            return known.exists(), frozenset()
        case _:
            return True, frozenset()


def groups_of(user: User, version: PolicyVersion | None) -> frozenset[str]:
    """The names of the person's groups. A name that the policy uses means the group that had it
    when the policy was put in force: not one that was made under it since."""
    mine = {group.pk: group.name for group in user.groups.all()}
    meant = version.groups if version else {}
    named = {name for name, group in meant.items() if group in mine}
    return frozenset(named | (set(mine.values()) - set(meant)))


def person(user: User) -> Subject:
    return Subject(SubjectType.PERSON, user.get_username())


def what_lacks(user: User, tenant: Tenant) -> str:
    """Why this person may approve nothing of the tenant now, in words; empty: entitled."""
    if not user.is_active:
        return "has no active account any more"
    if not holds(user, APPROVE_RIGHT, tenant):
        return f"may not approve for {tenant.name}"
    return ""


class Part(Func):
    """The nth part of a subject, "agent:refund-bot"."""

    function = "split_part"
    output_field = CharField()

    def __init__(self, subject: Any, number: int) -> None:
        super().__init__(subject, Value(":"), Value(number))


def proposers_of(proposal: Proposal) -> frozenset[Subject]:
    """Who asked, for whom, and who answers for the agents among them: of the proposal and of each
    that asked for the same before it; and who has started its run. Two queries."""
    started_by = audit.actors(STARTED, line_of(proposal.run_id))
    return proposers_among(chain_of(proposal.root), started_by)


def proposers_among(chain: Iterable[Proposal], started_by: Iterable[str]) -> frozenset[Subject]:
    """The same of what was read already: a `chain_of` proposals, and the actors of the record."""
    found: set[Subject] = set()
    for each in chain:
        named: Any = each
        texts = (each.proposed_by, each.on_behalf_of, each.asked_by)
        found.update(Subject.parse(text) for text in texts if text)
        if named.owner:
            found.add(Subject(SubjectType.PERSON, named.owner))
    people = (who(actor) for actor in started_by if actor.startswith("user:"))
    return frozenset(found | {Subject(SubjectType.PERSON, name) for name in people})


def chain_of(root: Any) -> QuerySet[Proposal]:
    """The proposals that ask for the same, the latest first, each with the `owner` who answers for
    the agent that made it; of a root, or of a query for it."""
    kind, slug = (Part(OuterRef("proposed_by"), number) for number in (1, 2))
    account = ServiceAccount.objects.filter(kind=kind, slug=slug)
    owner = Subquery(account.values("owner__username")[:1])
    return Proposal.objects.filter(root=root).annotate(owner=owner).order_by("-id")


def line_of(run: UUID) -> RawSQL:
    """A run and those that it descends from, however many, as the record calls them."""
    return RawSQL(LINE, [run])  # noqa: S611 (its own text alone)


def approvals_of(
    proposal: Proposal,
    tenant: Tenant,
    version: PolicyVersion | None,
    doing: Doing | None = None,
    operation: UUID | None = None,
    *,
    answers: Sequence[Approval] | None = None,
    proposers: frozenset[Subject] | None = None,
    rights: bool = True,
) -> Approvals:
    """What was approved, as it counts now.

    Args:
        version: the policy in force, which says what its names of groups mean.
        doing: what is about to be sent; None: nothing yet, and nothing is compared.
        operation: the one that wants to use the approval.
        answers, proposers: as `answers_to` and `proposers_of` give them, where they were read.
        rights: whether each approver is asked for, which a page does not.
    """
    return Approvals(
        expires_at=proposal.expires_at,
        given=given_in(
            answers_to(proposal) if answers is None else answers,
            proposal,
            tenant if rights else None,
            version,
        ),
        changed=changed_from(proposal, doing) if doing is not None else (),
        used=proposal.used_by is not None and proposal.used_by != operation,
        proposers=proposers_of(proposal) if proposers is None else proposers,
        closed=CLOSED[ProposalState(proposal.state)],
    )


def answers_to(proposal: Proposal, *also: User) -> list[Approval]:
    """The answers so far, in their order, with who gave them and their groups; those of `also` are
    read with them. Two queries."""
    rows = list(in_order(proposal.answers.all()))
    give_groups(rows, *also)
    return rows


def in_order(answers: QuerySet[Approval]) -> QuerySet[Approval]:
    return answers.select_related("by").order_by("at", "id")


def give_groups(answers: Iterable[Approval], *also: User) -> None:
    """Read the groups of who gave the answers, and of those of `also`. One query."""
    people = [*also, *(answer.by for answer in answers if answer.by is not None)]
    prefetch_related_objects(people, "groups")


def given_in(
    answers: Sequence[Approval],
    proposal: Proposal,
    tenant: Tenant | None,
    version: PolicyVersion | None,
) -> tuple[Given, ...]:
    """Every approval among `answers`, as it counts now; without a tenant no right is asked for."""
    latest = {giver(answer): answer for answer in answers}
    if tenant is not None:
        people = (answer.by for answer in answers if answer.by is not None)
        read_rights(each for each in people if each.is_active and not each.is_superuser)
    return tuple(
        as_given(answer, latest[giver(answer)], proposal, tenant, version)
        for answer in answers
        if answer.answer == Answer.APPROVE
    )


def giver(answer: Approval) -> Subject:
    """Who gave it: a person by the name that they have now."""
    return person(answer.by) if answer.by else Subject.parse(answer.subject)


def as_given(
    answer: Approval,
    latest: Approval,
    proposal: Proposal,
    tenant: Tenant | None,
    version: PolicyVersion | None,
) -> Given:
    return Given(
        by=giver(answer),
        at=answer.at,
        groups=groups_of(answer.by, version) if answer.by else frozenset(),
        lacks=what_lacks(answer.by, tenant) if answer.by and tenant else "",
        withdrawn=latest.answer == Answer.WITHDRAW,
        fits=answer.digest == proposal.parameters_digest,
    )


def changed_from(proposal: Proposal, doing: Doing) -> tuple[str, ...]:
    """What of an action is otherwise than it was proposed."""
    same_parameters = has_digest(
        action_of(doing.action, doing.parameters), proposal.parameters_digest
    )
    compared = {
        "the action": doing.action == proposal.action,
        "the parameters": same_parameters,
        "the target": doing.target == proposal.target,
        "the amount": amount_text(doing.amount) == amount_text(proposal.amount),
        "the currency": doing.currency == proposal.currency,
        "the precondition": dict(doing.precondition) == sealed_of(proposal)["precondition"],
    }
    return tuple(name for name, same in compared.items() if not same)


def sealed_of(proposal: Proposal) -> dict[str, Any]:
    """The parameters and the precondition of a proposal."""
    plain: dict[str, Any] = read_back(unseal(proposal.parameters_sealed, PROPOSED))
    return plain


def doing_of(proposal: Proposal) -> Doing:
    """The action that a proposal proposes."""
    plain = sealed_of(proposal)
    return Doing(
        proposal.action,
        proposal.target,
        plain["parameters"],
        proposal.amount,
        proposal.currency,
        plain["precondition"],
    )


# --- the answer ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asking:
    """A question to the boundary, and what it is about for the record."""

    request: Request
    approvals: Approvals | None
    version: PolicyVersion | None
    tenant: Tenant
    proposal: Proposal | None = None
    run: UUID | None = None
    step: str = ""
    operation: UUID | None = None

    def answered(self, now: datetime) -> Verdict:
        """What the built-in boundary says at `now`, the database's time."""
        policy = self.version.policy if self.version else None
        return evaluate(self.request, policy, self.approvals, now)


def record(asking: Asking, verdict: Verdict, asked: Asked) -> AuthorisationRecord:
    """Record an answer, in the caller's transaction. No parameter is in the open (promise P9)."""
    inputs = {
        "request": asking.request.as_json(),
        "approvals": asking.approvals.as_json() if asking.approvals else None,
    }
    text = json.dumps(inputs).encode()
    behalf = asking.request.on_behalf_of
    return AuthorisationRecord.objects.create(
        tenant=asking.tenant,
        asked=asked,
        subject=str(asking.request.subject),
        on_behalf_of=str(behalf) if behalf else "",
        action=asking.request.action[:100],
        allowed=verdict.allowed,
        failed=verdict.check,
        reason=verdict.reason[:1000],
        findings=[finding.as_json() for finding in verdict.findings],
        policy=asking.version,
        inputs_digest=digest(inputs),
        inputs_sealed=seal(text, ASKED) if len(text) <= LARGEST_KEPT else None,
        decision_id=verdict.decision_id[:200],
        proposal=asking.proposal,
        run=asking.run,
        step=asking.step,
        operation=asking.operation,
    )


def inputs_of(row: AuthorisationRecord) -> tuple[Request, Approvals | None] | None:
    """What was asked then; None where it was too large to be kept.

    Raises:
        UsageError: it names a subject that this version does not know.
    """
    if row.inputs_sealed is None:
        return None
    plain = json.loads(unseal(row.inputs_sealed, ASKED))
    given = plain["approvals"]
    request = Request.from_json(plain["request"])
    return request, Approvals.from_json(given) if given is not None else None


def subject_named(text: str, workflow: str) -> Subject:
    """Who proposes: whom the author names, or the workflow itself."""
    return Subject.parse(text) if text else Subject(SubjectType.WORKFLOW, workflow)
