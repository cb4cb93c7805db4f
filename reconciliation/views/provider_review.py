"""The review of a contract that a provider was seen to break."""

from __future__ import annotations

from http import HTTPStatus

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from reconciliation import access
from reconciliation.core.errors import ContradictionMoved, InvalidDecision
from reconciliation.models import Provider
from reconciliation.provider_review_form import ProviderReviewForm
from reconciliation.selectors.provider_review import review_page
from reconciliation.services.contradictions import ensure_may_review, review_contradiction
from workflows.services.clock import database_now
from workflows.views.requests import SeeOther, SignedIn


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def provider_review(request: SignedIn, slug: str) -> HttpResponse:
    """GET shows and changes nothing; POST reviews it, or says why it was not reviewed."""
    found = access.provider_for(request.user, slug)
    if request.method != "POST":
        return shown(request, found, ProviderReviewForm())
    ensure_may_review(request.user, found)
    form = ProviderReviewForm(request.POST)
    try:
        if form.is_valid() and reviewed(request, found, form):
            return SeeOther(reverse("provider", args=[slug]))
    except ContradictionMoved as error:
        found = access.provider_for(request.user, slug)
        return shown(request, found, form, HTTPStatus.CONFLICT, overtaken=str(error))
    return shown(request, found, form, HTTPStatus.UNPROCESSABLE_ENTITY)


def reviewed(request: SignedIn, provider: Provider, form: ProviderReviewForm) -> bool:
    given = form.cleaned_data
    try:
        review_contradiction(provider, given["shown"], by=request.user, note=given["note"])
    except InvalidDecision as error:
        form.add_error(error.field, str(error))
        return False
    return True


def shown(
    request: SignedIn,
    provider: Provider,
    form: ProviderReviewForm,
    status: HTTPStatus = HTTPStatus.OK,
    *,
    overtaken: str = "",
) -> HttpResponse:
    context = {
        "page": review_page(provider, request.user),
        "form": form,
        "errors": {name: texts[0] for name, texts in form.errors.items()},
        "overtaken": overtaken,
        "now": database_now(),
    }
    return render(request, "reconciliation/provider_review.html", context, status=status)
