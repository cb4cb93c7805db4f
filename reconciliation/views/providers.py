"""Providers: what each documents, whether it may send, and its runbook."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from reconciliation import access
from reconciliation.selectors.provider_page import provider_page, providers_page
from workflows.services.clock import database_now
from workflows.views.requests import SignedIn, asks_for, fingerprint, nothing_new


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
    found = access.provider_for(request.user, slug)
    now = database_now()
    page = provider_page(found, request.user, now)
    seen = fingerprint((page.dispatch, page.parts, page.switch))
    context = {"page": page, "seen": seen, "now": now}
    if asks_for(request, "live"):
        return nothing_new(request, seen) or render(
            request, "reconciliation/_provider_refreshed.html", context
        )
    return render(request, "reconciliation/provider.html", context)
