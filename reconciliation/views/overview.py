"""The overview."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from reconciliation.selectors.overview import RANGES, overview_page, standing
from workflows.core.ranges import DAY, range_of
from workflows.services.clock import database_now
from workflows.views.requests import SignedIn, asks_for, nothing_new


@login_required
@require_safe
def overview(request: SignedIn) -> HttpResponse:
    """How things are; to a poll only what is new, and that is found out first."""
    now = database_now()
    known = standing(request.user, now.astimezone(request.profile.zone))
    fragment = asks_for(request, "overview")
    if fragment and (same := nothing_new(request, known.seen)):
        return same
    back = range_of(request.GET.get("range", ""), RANGES, DAY)
    context = {"page": overview_page(request.user, now, known, back), "now": now}
    template = "reconciliation/_overview.html" if fragment else "reconciliation/overview.html"
    return render(request, template, context)
