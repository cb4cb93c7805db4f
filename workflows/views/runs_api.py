"""Runs for programs that read for a person: with a token of theirs, what that person may see.

GET /api/runs/        the newest first; `before` an ID; of a `state`, `workflow`, `tenant`
GET /api/runs/<id>/   one of them
"""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from workflows import access
from workflows.selectors.paging import as_uuid, newest_first
from workflows.selectors.run_document import run_line
from workflows.views.of_person import of_person, word_of

BY = {"state": "state", "workflow": "workflow", "tenant": "tenant__slug"}


@require_safe
@of_person
def runs(request: HttpRequest, user: User) -> HttpResponse:
    wanted = {column: word_of(request, name) for name, column in BY.items() if name in request.GET}
    rows = access.visible_runs(user).filter(**wanted).select_related("tenant")
    found, _, older = newest_first(rows, as_uuid(request.GET.get("before", "")), None)
    return JsonResponse(
        {"runs": [run_line(run) for run in found], "before": found[-1].pk if older else None}
    )


@require_safe
@of_person
def run(request: HttpRequest, user: User, run: UUID) -> HttpResponse:  # noqa: ARG001
    return JsonResponse(run_line(access.run_for(user, run)))
