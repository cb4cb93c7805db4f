"""A case, or the review queue, as a file. Posted, not got: an export is on record, and no link that
a machine fetches is to put it there."""

from __future__ import annotations

from typing import IO
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import FileResponse, StreamingHttpResponse
from django.views.decorators.http import require_POST

from reconciliation import access
from reconciliation.core.queue_views import looked_at
from reconciliation.exports.lists import QUEUE_COLUMNS, queue_rows
from reconciliation.exports.pack import case_document, evidence_pack, name_of
from reconciliation.selectors.queue_filters import condition
from workflows.pages import MOST_EXPORTED
from workflows.services.clock import database_now
from workflows.views.requests import SignedIn
from workflows.views.tables import Exported, as_table


@login_required
@require_POST
def operation_evidence(request: SignedIn, operation: UUID) -> FileResponse:
    """The evidence pack of an operation."""
    found = access.operation_for(request.user, operation)
    return as_file(evidence_pack(found, request.user), f"{name_of(found)}.zip", "application/zip")


@login_required
@require_POST
def operation_export(request: SignedIn, operation: UUID) -> FileResponse:
    """The case of an operation as one JSON document."""
    found = access.operation_for(request.user, operation)
    return as_file(case_document(found, request.user), f"{name_of(found)}.json", "application/json")


@login_required
@require_POST
def queue_export(request: SignedIn) -> StreamingHttpResponse:
    """The open cases of the list that the address shows, one a row, the most urgent first."""
    looked, user = looked_at(request.GET.dict()), request.user
    holds = access.open_holds(user).filter(condition(looked, user, database_now()))
    rows = queue_rows(holds, MOST_EXPORTED)
    return as_table(request, Exported("review-queue", looked.query(), holds, QUEUE_COLUMNS, rows))


def as_file(content: IO[bytes], name: str, kind: str) -> FileResponse:
    """An answer that is kept as a file, and in no cache."""
    answer = FileResponse(content, as_attachment=True, filename=name, content_type=kind)
    answer.headers["Cache-Control"] = "private, no-store"
    return answer
