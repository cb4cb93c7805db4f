"""The audit record."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from reconciliation.selectors.audit_page import audit_page
from workflows.services.clock import database_now
from workflows.views.requests import SignedIn


@login_required
@require_safe
def audit(request: SignedIn) -> HttpResponse:
    """The entries about what this person may see, the newest first."""
    page = audit_page(
        request.user,
        before=request.GET.get("before", ""),
        object=request.GET.get("object", "").replace("\0", ""),
        actor=request.GET.get("actor", "").replace("\0", ""),
    )
    return render(request, "reconciliation/audit.html", {"page": page, "now": database_now()})
