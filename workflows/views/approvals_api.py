"""Approvals for programs that act for a person: with a token of theirs, by the console's rules.

GET  /api/approvals/                what asks for an approval, the newest first
GET  /api/approvals/<id>/           one proposal
POST /api/approvals/<id>/answers/   {"answer", "digest", "token", "note"}
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_POST, require_safe

from workflows import access
from workflows.core.errors import UsageError
from workflows.core.proposals import Answer, ProposalState
from workflows.selectors.paging import as_uuid, newest_first
from workflows.selectors.proposal_document import answer_line, proposal_document, proposal_line
from workflows.services.answers import Given, answer
from workflows.views.bearing import json_of
from workflows.views.of_person import of_person


@require_safe
@of_person
def proposals(request: HttpRequest, user: User) -> HttpResponse:
    """Those that ask now; `before` asks for older ones than that ID."""
    asking = access.visible_proposals(user).select_related("tenant")
    asking = asking.filter(state=ProposalState.OPEN, expires_at__gt=Now())
    found, _, older = newest_first(asking, as_uuid(request.GET.get("before", "")), None)
    rows = [proposal_line(each) for each in found]
    return JsonResponse({"proposals": rows, "before": rows[-1]["id"] if older else None})


@require_safe
@of_person
def proposal(request: HttpRequest, user: User, proposal: UUID) -> HttpResponse:  # noqa: ARG001
    found = access.proposal_for(user, proposal)
    payloads = access.may_view_payloads(user, found.tenant)
    return JsonResponse(proposal_document(found, payloads=payloads))


@require_POST
@of_person
def answers(request: HttpRequest, user: User, proposal: UUID) -> HttpResponse:
    """Answer it; the same `token` again is the same answer, and is recorded once."""
    found = access.proposal_for(user, proposal)
    row = answer(found.pk, user, given_in(json_of(request)))
    found.refresh_from_db(fields=["state"])
    return JsonResponse(answer_line(row) | {"proposal": str(found.pk), "state": found.state})


def given_in(document: Any) -> Given:
    """Raises `UsageError`: something is missing, or of another form."""
    texts = document if isinstance(document, dict) else {}
    if any(not isinstance(text, str) for text in texts.values()):
        raise UsageError("an object of texts is needed")
    kind, token = texts.get("answer", ""), as_uuid(texts.get("token", ""))
    if kind not in list(Answer):
        raise UsageError(f"answer: one of {', '.join(Answer)}")
    if token is None:
        raise UsageError("token: a UUID of your making is needed: it makes a repeat harmless")
    return Given(Answer(kind), texts.get("digest", ""), token, texts.get("note", ""))
