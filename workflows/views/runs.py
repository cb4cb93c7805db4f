"""The runs list and one run."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from workflows import access
from workflows.selectors.run_list import Asked, run_list
from workflows.selectors.run_page import run_page
from workflows.services.clock import database_now
from workflows.views.requests import SignedIn, asks_for, moment, nothing_new


@login_required
@require_safe
def runs(request: SignedIn) -> HttpResponse:
    """The runs that this person may see, newest first."""
    visible = access.visible_runs(request.user)
    now = database_now()
    names = ("state", "children", "parent", "before", "after")
    asked = Asked(**{name: request.GET.get(name, "") for name in names})
    context = {"page": run_list(visible, now, asked), "now": now}
    template = "workflows/_runs.html" if asks_for(request, "runs") else "workflows/runs.html"
    return render(request, template, context)


@login_required
@require_safe
def run(request: SignedIn, run: UUID) -> HttpResponse:
    """One run, its timeline alone, or what is new of it."""
    found = access.run_for(request.user, run)
    now = database_now()
    page = run_page(
        found,
        request.user,
        now,
        payloads=access.may_view_payloads(request.user, found.tenant),
        control=access.may_control(request.user, found.tenant),
        folded=request.GET.get("scale") != "true",
        before=moment(request.GET.get("before", "")),
        children=request.GET.get("children", ""),
        zone=request.profile.zone,
    )
    context = {"page": page, "now": now, "before": request.GET.get("before", "")}
    if asks_for(request, "timeline"):
        return render(request, "workflows/_timeline.html", context)
    if asks_for(request, "live"):
        return nothing_new(request, page.seen) or render(
            request, "workflows/_refreshed.html", context
        )
    return render(request, "workflows/run.html", context)
