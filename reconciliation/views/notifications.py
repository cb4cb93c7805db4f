"""What was told to whom, whether it arrived, and what a person wants to be told."""

from __future__ import annotations

from http import HTTPStatus

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from reconciliation.digest_form import DigestForm
from reconciliation.models import Digest
from reconciliation.selectors.notification_page import notifications_page
from reconciliation.services.digests import set_digest
from workflows.services.clock import database_now
from workflows.views.requests import SeeOther, SignedIn


@login_required
@require_safe
def notifications(request: SignedIn) -> HttpResponse:
    return shown(request, None)


@login_required
@require_POST
def choose_digest(request: SignedIn) -> HttpResponse:
    """Set the reader's own digest, or say what does not fit."""
    form = DigestForm(request.POST)
    if not form.is_valid():
        return shown(request, form, HTTPStatus.UNPROCESSABLE_ENTITY)
    set_digest(request.user, form.chosen, form.cleaned_data["at"], form.cleaned_data["zone"])
    return SeeOther(f"{reverse('notifications')}#digest")


def shown(
    request: SignedIn, refused: DigestForm | None, status: HTTPStatus = HTTPStatus.OK
) -> HttpResponse:
    now = database_now()
    digest = Digest.objects.filter(person=request.user).first()
    known = {"zone": str(request.profile.zone)}
    if digest is not None:
        known = {"every": digest.every, "at": f"{digest.at:%H:%M}", "zone": digest.zone}
    form = refused or DigestForm(initial=known)
    before, after = request.GET.get("before", ""), request.GET.get("after", "")
    context = {
        "page": notifications_page(request.user, now, before=before, after=after),
        "form": form,
        "errors": {name: texts[0] for name, texts in form.errors.items()},
        "digest_at": digest.next_at if digest else None,
        "now": now,
    }
    return render(request, "reconciliation/notifications.html", context, status=status)
