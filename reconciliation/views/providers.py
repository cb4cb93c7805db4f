"""Providers: what each documents, whether it may send, and its runbook."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from reconciliation import access
from reconciliation.selectors.provider_page import provider_page, providers_page
from workflows.services.clock import database_now
from workflows.views.requests import SignedIn


@login_required
@require_safe
def providers(request: SignedIn) -> HttpResponse:
    now = database_now()
    context = {"page": providers_page(request.user, now), "now": now}
    return render(request, "reconciliation/providers.html", context)


@login_required
@require_safe
def provider(request: SignedIn, slug: str) -> HttpResponse:
    found = access.provider_for(request.user, slug)
    now = database_now()
    context = {"page": provider_page(found, request.user, now), "now": now}
    return render(request, "reconciliation/provider.html", context)
