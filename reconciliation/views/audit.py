"""The audit record."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from reconciliation.core.audit_asked import AuditAsked
from reconciliation.exports.lists import AUDIT_COLUMNS, audit_rows
from reconciliation.selectors.audit_entries import entries_asked
from reconciliation.selectors.audit_page import audit_page
from workflows.pages import MOST_EXPORTED
from workflows.services.clock import database_now
from workflows.views.requests import SignedIn
from workflows.views.tables import Exported, as_table


@login_required
@require_safe
def audit(request: SignedIn) -> HttpResponse:
    """The entries about what this person may see, the newest first."""
    page = audit_page(request.user, AuditAsked.read(request.GET))
    return render(request, "reconciliation/audit.html", {"page": page, "now": database_now()})


@login_required
@require_POST
def audit_export(request: SignedIn) -> StreamingHttpResponse:
    """Those entries as a file."""
    asked = AuditAsked.read(request.GET)
    among = entries_asked(asked)
    rows = audit_rows(among, request.user, MOST_EXPORTED)
    return as_table(request, Exported("audit", asked.query(), among, AUDIT_COLUMNS, rows))
