"""Holds for programs that read for a person: with a token of theirs, what that person may see.

GET /api/holds/        the open ones, the newest first; `before` an ID; of a `queue`
GET /api/holds/<id>/   one of them, also when it is closed

Nothing is decided here: each decision is a person's, with the evidence before their eyes.
"""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from reconciliation import access
from reconciliation.selectors.hold_document import SHOWN_WITH, hold_line
from workflows.selectors.paging import as_uuid, newest_first
from workflows.views.of_person import of_person, word_of


@require_safe
@of_person
def holds(request: HttpRequest, user: User) -> HttpResponse:
    rows = access.open_holds(user).select_related(*SHOWN_WITH)
    if "queue" in request.GET:
        rows = rows.filter(queue__slug=word_of(request, "queue"))
    found, _, older = newest_first(rows, as_uuid(request.GET.get("before", "")), None)
    return JsonResponse(
        {"holds": [hold_line(hold) for hold in found], "before": found[-1].pk if older else None}
    )


@require_safe
@of_person
def hold(request: HttpRequest, user: User, hold: UUID) -> HttpResponse:  # noqa: ARG001
    found = access.visible_holds(user).select_related(*SHOWN_WITH).filter(pk=hold).first()
    if found is None:
        raise Http404
    return JsonResponse(hold_line(found) | {"state": found.state})
