"""Providers: what each documents, whether it may send, and its runbook."""

from __future__ import annotations

from http import HTTPStatus

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from reconciliation import access
from reconciliation.selectors.provider_page import provider_page, providers_page
from reconciliation.selectors.provider_stamp import provider_stamp
from workflows.selectors.stamps import REDRAWN_EVERY
from workflows.services.clock import database_now
from workflows.views.requests import Seen, SignedIn, asks_for, fingerprint


@login_required
@require_safe
def providers(request: SignedIn) -> HttpResponse:
    now = database_now()
    context = {"page": providers_page(request.user, now), "now": now}
    return render(request, "reconciliation/providers.html", context)


@login_required
@require_safe
def provider(request: SignedIn, slug: str) -> HttpResponse:
    """A provider, or what is new of whether it may send."""
    polled, before = asks_for(request, "live"), Seen.by(request)
    stamp = provider_stamp(request.user, slug).read_in(request.profile.zone)
    if polled and before.is_of(stamp):
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    found, now = access.provider_for(request.user, slug), stamp.now
    page = provider_page(found, request.user, now)
    shown = fingerprint((page.dispatch, page.parts, page.switch))
    known = Seen.of(stamp, now + REDRAWN_EVERY, shown)
    if polled and before.shows(known):
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    context = {"page": page, "seen": str(known), "now": now}
    template = (
        "reconciliation/_provider_refreshed.html" if polled else "reconciliation/provider.html"
    )
    return render(request, template, context)
