"""The worker processes: who is alive, who went quiet, and what they hold."""

from __future__ import annotations

from http import HTTPStatus

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from workflows import access
from workflows.selectors.list_stamps import workers_stamp
from workflows.selectors.stamps import REDRAWN_EVERY
from workflows.selectors.worker_list import workers_page
from workflows.views.requests import Seen, SignedIn, asks_for, fingerprint
from workflows.worker_pages import WorkersPage


@login_required
@require_safe
def workers(request: SignedIn) -> HttpResponse:
    """Names no run that this person may not see; who may see no runs is told of no worker."""
    polled, before = asks_for(request, "workers"), Seen.by(request)
    stamp = workers_stamp(request.user).read_in(request.profile.zone)
    if polled and before.is_of(stamp):
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    if access.visible_tenants(request.user).exists():
        page, until = workers_page(access.visible_runs(request.user), stamp.now)
    else:
        page, until = WorkersPage("", may_see=False), stamp.now + REDRAWN_EVERY
    known = Seen.of(stamp, until, fingerprint(page))
    context = {"page": page, "seen": str(known), "now": stamp.now}
    template = "workflows/_workers.html" if polled else "workflows/workers.html"
    return render(request, template, context)
