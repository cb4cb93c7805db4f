"""A person's own preferences."""

from __future__ import annotations

from http import HTTPStatus

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from reconciliation.selectors.profile_page import profile_page
from reconciliation.services.profiles import profile_of, save_preferences, set_live
from workflows.core.errors import UsageError
from workflows.services.clock import database_now
from workflows.views.requests import SeeOther, SignedIn


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def profile(request: SignedIn) -> HttpResponse:
    """Time zone and shortcuts: shown by GET, saved by POST."""
    own = profile_of(request.user)
    if request.method != "POST":
        return shown(request, own.time_zone, letters=own.letters, saved="saved" in request.GET)
    zone, letters = request.POST.get("time_zone", ""), "letters" in request.POST
    try:
        save_preferences(request.user, time_zone=zone, letters=letters)
    except UsageError as error:
        return shown(request, zone, letters=letters, error=str(error))
    return SeeOther(f"{reverse('profile')}?saved=1")


def shown(
    request: SignedIn, zone: str, *, letters: bool, saved: bool = False, error: str = ""
) -> HttpResponse:
    page = profile_page(zone, letters=letters, saved=saved, error=error)
    status = HTTPStatus.UNPROCESSABLE_ENTITY if error else HTTPStatus.OK
    context = {"page": page, "now": database_now()}
    return render(request, "reconciliation/profile.html", context, status=status)


@login_required
@require_POST
def profile_live(request: SignedIn) -> HttpResponse:
    """Pause live updates everywhere for this person, or resume them."""
    set_live(request.user, live=request.POST.get("live") != "paused")
    if request.htmx:
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    return SeeOther(reverse("profile"))
