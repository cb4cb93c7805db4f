"""What another policy would change: it is asked what the boundary was asked lately. Nothing is
written, and nothing is sent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cryptography.fernet import InvalidToken
from django.db.models import QuerySet

from workflows.core.boundary.evaluate import evaluate
from workflows.core.boundary.policy import Policy, parse_policy
from workflows.core.boundary.subjects import Subject
from workflows.core.boundary.verdict import Check, Finding, Verdict
from workflows.core.errors import UsageError
from workflows.core.proposals import Asked
from workflows.models import AuthorisationRecord, PolicyVersion, Tenant
from workflows.services.authorising import inputs_of

MOST = 200
# What others said then is taken as they said it: they are not asked for a preview.
ELSEWHERE = frozenset({Check.PRECONDITION, Check.DECISION_POINT})


@dataclass(frozen=True, slots=True)
class Change:
    """One answer that would be another one."""

    at: datetime
    subject: str
    action: str
    tenant: str
    now_allowed: bool
    then: str
    would: str


@dataclass(frozen=True, slots=True)
class Preview:
    """Attributes:
    looked_at: how many answers were tried again.
    not_kept: how many could not be, because what was asked is not kept or cannot be opened.
    """

    looked_at: int
    not_kept: int
    changes: tuple[Change, ...]


def preview(document: Any, visible: QuerySet[Tenant], tenant: Tenant | None) -> Preview:
    """Try a policy on the latest answers that it would have given.

    Args:
        document: as an administrator wrote it.
        visible: the tenants that the reader may see.
        tenant: whose it is to be; None: of those that have none of their own.

    Raises:
        InvalidPolicy: names the place.
    """
    policy = Policy(name="the new one", document=parse_policy(document))
    rows = AuthorisationRecord.objects.filter(tenant__in=visible).select_related("tenant")
    if tenant is not None:
        rows = rows.filter(tenant=tenant)
    else:
        own = PolicyVersion.objects.exclude(tenant=None).values("tenant")
        rows = rows.exclude(tenant__in=own)
    latest = list(rows.order_by("-id")[:MOST])
    tried = [(row, tried_again(row, policy)) for row in latest]
    return Preview(
        looked_at=sum(verdict is not None for _, verdict in tried),
        not_kept=sum(verdict is None for _, verdict in tried),
        changes=tuple(changes_in(tried)),
    )


def tried_again(row: AuthorisationRecord, policy: Policy) -> Verdict | None:
    """What the policy would have said then; None where what was asked cannot be had."""
    try:
        inputs = inputs_of(row)
    except (InvalidToken, UsageError):
        return None
    if inputs is None:
        return None
    request, approvals = inputs
    verdict = evaluate(request, policy, approvals, row.at)
    if row.asked == Asked.PROPOSAL:
        return verdict.before_approval()
    said = [Finding.from_json(each) for each in row.findings]
    return verdict.also(*(each for each in said if each.check in ELSEWHERE))


def changes_in(tried: Iterable[tuple[AuthorisationRecord, Verdict | None]]) -> Iterable[Change]:
    for row, verdict in tried:
        if verdict is None or verdict.allowed == row.allowed:
            continue
        yield Change(
            at=row.at,
            subject=Subject.parse(row.subject).title,
            action=row.action,
            tenant=row.tenant.slug,
            now_allowed=verdict.allowed,
            then=row.reason,
            would=verdict.reason,
        )
