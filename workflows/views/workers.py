"""The worker processes: who is alive, who went quiet, and what they hold."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from workflows import access
from workflows.selectors.worker_list import workers_page
from workflows.services.clock import database_now
from workflows.views.requests import SignedIn, asks_for, fingerprint, nothing_new
from workflows.worker_pages import WorkersPage


@login_required
@require_safe
def workers(request: SignedIn) -> HttpResponse:
    """Names no run that this person may not see; who may see no runs is told of no worker."""
    now = database_now()
    if access.visible_tenants(request.user).exists():
        page = workers_page(access.visible_runs(request.user), now)
    else:
        page = WorkersPage("", may_see=False)
    known = fingerprint(page)
    context = {"page": page, "seen": known, "now": now}
    if not asks_for(request, "workers"):
        return render(request, "workflows/workers.html", context)
    return nothing_new(request, known) or render(request, "workflows/_workers.html", context)
