"""Answering executors elsewhere that ask the same boundary, each answer on record.

A token asks about its own tenant alone. Where no policy is set up the answer is no: whoever asks
has nothing else that would let it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
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
from workflows.services.decision_points import PointAnswer, ask_point
from workflows.services.policies import policy_for

Answer = dict[str, Any]
SILENT = PointAnswer(
    Finding(Check.DECISION_POINT, False, "The decision point did not answer the one before.")
)
NO_POLICY = Finding(Check.TOOL, False, "No policy is set up for this tenant.")


def evaluated(document: Any, tenant: Tenant) -> Answer:
    """Answer one evaluation.

    Raises:
        UsageError: it is none; nothing is recorded.
    """
    said = judged(read(document), tenant, policy_for(tenant.pk))
    return recorded([said])[0]


def evaluated_all(batch: Batch, tenant: Tenant) -> list[Answer]:
    """Answer several, in their order, under one version of the policy. One that is no evaluation is
    denied with its error, and not recorded."""
    version, said, silent = policy_for(tenant.pk), list[Judged | Answer](), False
    for document in batch.evaluations:
        try:
            found = judged(read(document), tenant, version, silent=silent)
        except UsageError as error:
            said.append({"decision": False, "context": {"error": unreadable(error)}})
        else:
            said.append(found)
            # A decision point that has not answered once is not waited for again and again.
            silent = silent or found.silent
        last = said[-1]
        if batch.semantic.ends(isinstance(last, Judged) and last.verdict.allowed):
            break
    return recorded(said)


def unreadable(error: UsageError) -> dict[str, Any]:
    return {"status": HTTPStatus.BAD_REQUEST, "message": str(error)}


def read(document: Any) -> Evaluation:
    evaluation = evaluation_of(document)
    ensure_plain(evaluation.parameters, "resource.properties.parameters")
    if len(evaluation.action) > 100:  # noqa: PLR2004 (its column's length)
        raise UsageError("action.name: 100 characters at most")
    return evaluation


@dataclass(frozen=True)
class Judged:
    """One evaluation and its answer, not recorded yet; `silent`: a decision point did not say."""

    asking: Asking
    verdict: Verdict
    silent: bool = False


def judged(
    evaluation: Evaluation, tenant: Tenant, version: PolicyVersion | None, *, silent: bool = False
) -> Judged:
    """Ask the policy, and then the decision point that it names: both must allow."""
    active, groups = standing_of(evaluation.subject, version)
    request = evaluation.request(tenant.slug, active, groups)
    asking = Asking(request, approvals=None, version=version, tenant=tenant)
    verdict = asking.answered(database_now()) if version else Verdict((NO_POLICY,))
    if not verdict.allowed:
        return Judged(asking, verdict)
    said = SILENT if silent else ask_point(version, request)
    if said is None:
        return Judged(asking, verdict)
    whole = verdict.also(said.finding, decision_id=said.decision_id)
    return Judged(asking, whole, silent=not said.answered)


def recorded(said: Sequence[Judged | Answer]) -> list[Answer]:
    """Record the answers in one transaction, and give them in the words of the specification."""
    failpoint("before_served")
    with transaction.atomic():
        answers = [answer_of(each) if isinstance(each, Judged) else each for each in said]
    failpoint("after_served")
    return answers


def answer_of(said: Judged) -> Answer:
    row = record(said.asking, said.verdict, Asked.SERVED)
    reason = {"en": said.verdict.reason}
    context = {"id": str(row.pk), "reason_admin": reason}
    if not said.verdict.allowed:
        context["reason_user"] = reason
    return {"decision": said.verdict.allowed, "context": context}
