"""The versions of every workflow, and what would move to the latest."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from workflows import access
from workflows.selectors.versions import versions_page
from workflows.services.clock import database_now
from workflows.version_pages import VersionsPage
from workflows.views.requests import SignedIn


@login_required
@require_safe
def versions(request: SignedIn) -> HttpResponse:
    """Counts only what this person may see; to those who may see no runs there is nothing here."""
    now = database_now()
    sees_any = access.visible_tenants(request.user).exists()
    visible = access.visible_runs(request.user)
    page = versions_page(visible, now) if sees_any else VersionsPage()
    return render(request, "workflows/versions.html", {"page": page, "now": now})
