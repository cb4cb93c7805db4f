"""Answering executors elsewhere that ask the same boundary, each answer on record.

A token asks about its own tenant alone. Where no policy is set up the answer is no: whoever asks
has nothing else that would let it.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction

from workflows.core.boundary.authzen import Batch, Evaluation, evaluation_of
from workflows.core.boundary.verdict import Check, Finding, Verdict
from workflows.core.errors import UsageError
from workflows.core.proposals import Asked
from workflows.core.values import ensure_plain
from workflows.failpoints import failpoint
from workflows.models import PolicyVersion, Tenant
from workflows.services.authorising import Asking, record, standing_of
from workflows.services.clock import database_now
from workflows.services.policies import policy_for

Answer = dict[str, Any]
NO_POLICY = Finding(Check.TOOL, False, "No policy is set up for this tenant.")


def evaluated(document: Any, tenant: Tenant) -> Answer:
    """Answer one evaluation.

    Raises:
        UsageError: it is none; nothing is recorded.
    """
    evaluation = read(document)
    failpoint("before_served")
    with transaction.atomic():
        answer = answered(evaluation, tenant, policy_for(tenant.pk))
    failpoint("after_served")
    return answer


def evaluated_all(batch: Batch, tenant: Tenant) -> list[Answer]:
    """Answer several, in their order, under one version of the policy.

    Raises:
        UsageError: one of them is none; nothing is recorded.
    """
    evaluations = [read(document) for document in batch.evaluations]
    answers: list[Answer] = []
    failpoint("before_served")
    with transaction.atomic():
        version = policy_for(tenant.pk)
        for evaluation in evaluations:
            answers.append(answered(evaluation, tenant, version))
            if batch.semantic.ends(answers[-1]["decision"]):
                break
    failpoint("after_served")
    return answers


def read(document: Any) -> Evaluation:
    evaluation = evaluation_of(document)
    ensure_plain(evaluation.parameters, "resource.properties.parameters")
    if len(evaluation.action) > 100:  # noqa: PLR2004 (its column's length)
        raise UsageError("action.name: 100 characters at most")
    return evaluation


def answered(evaluation: Evaluation, tenant: Tenant, version: PolicyVersion | None) -> Answer:
    active, groups = standing_of(evaluation.subject)
    asking = Asking(
        request=evaluation.request(tenant.slug, active, groups),
        approvals=None,
        version=version,
        tenant=tenant,
    )
    verdict = asking.answered(database_now()) if version else Verdict((NO_POLICY,))
    row = record(asking, verdict, Asked.SERVED)
    context = {"id": str(row.pk), "reason_admin": {"en": verdict.reason}}
    if not verdict.allowed:
        context["reason_user"] = {"en": verdict.reason}
    return {"decision": verdict.allowed, "context": context}
