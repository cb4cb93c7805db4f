"""One proposal as plain JSON: for the command line and for programs that ask over HTTP."""

from __future__ import annotations

from typing import Any

from workflows.core.boundary.canonical import amount_text
from workflows.models import Approval, Proposal
from workflows.services.authorising import answers_to, sealed_of


def proposal_line(proposal: Proposal) -> dict[str, Any]:
    """What a list says of it. The proposal comes with its tenant."""
    return {
        "id": str(proposal.pk),
        "state": proposal.state,
        "action": proposal.action,
        "target": proposal.target,
        "summary": proposal.summary,
        "amount": amount_text(proposal.amount) or None,
        "currency": proposal.currency,
        "reason": proposal.reason,
        "proposed_by": proposal.proposed_by,
        "on_behalf_of": proposal.on_behalf_of or None,
        "tenant": proposal.tenant.slug,
        "run": str(proposal.run_id),
        "step": proposal.step,
        "proposed_at": proposal.created_at.isoformat(),
        "expires_at": proposal.expires_at.isoformat(),
        "digest": proposal.parameters_digest,
    }


def proposal_document(proposal: Proposal, *, payloads: bool) -> dict[str, Any]:
    """All of it, with its answers; two queries.

    Args:
        payloads: whether the reader may see what would be sent.
    """
    answers = [answer_line(each) for each in answers_to(proposal)]
    parameters = sealed_of(proposal)["parameters"] if payloads else None
    return proposal_line(proposal) | {"parameters": parameters, "answers": answers}


def answer_line(answer: Approval) -> dict[str, Any]:
    return {
        "id": str(answer.pk),
        "answer": answer.answer,
        "by": answer.subject,
        "by_name": answer.by_name,
        "note": answer.note,
        "at": answer.at.isoformat(),
    }
