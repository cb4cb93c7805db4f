"""Where one is signed in."""

from __future__ import annotations

from http import HTTPStatus

from allauth.account.decorators import reauthentication_required
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import add_never_cache_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST

from romulus_site.accounts.sessions import begin, end_sessions, session_rows
from workflows.core.errors import UsageError
from workflows.selectors.paging import as_uuid
from workflows.services.access_tokens import (
    LONGEST_LABEL,
    PERSONS_LAST,
    add_own_token,
    end_own_token,
    tokens_of,
)
from workflows.services.clock import database_now
from workflows.views.requests import SeeOther, SignedIn

MOST_DIGITS = 18  # of a session's number


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def sessions(request: SignedIn) -> HttpResponse:
    """The person's open sessions; POST ends one of them, or all but this one."""
    current = request.session.session_key
    if request.method != "POST":
        context = {"rows": session_rows(request.user, current), "now": database_now()}
        return render(request, "usersessions/usersession_list.html", context)
    named = request.POST.get("session", "")
    if named.isdecimal() and len(named) <= MOST_DIGITS:
        end_sessions(request.user, only=int(named), keep=current)
    elif named == "others":
        end_sessions(request.user, keep=current)
    return SeeOther(reverse("usersessions_list"))


@login_required
@require_http_methods(["GET", "POST"])
@reauthentication_required(allow_get=True)  # type: ignore[untyped-decorator]  # of allauth
def tokens(request: SignedIn) -> HttpResponse:
    """The person's own tokens; POST makes one, which this answer alone shows, or ends one."""
    if request.method != "POST":
        return own_tokens(request)
    ended = as_uuid(request.POST.get("end", ""))
    if ended is not None:
        end_own_token(ended, request.user)
        return SeeOther(reverse("own_tokens"))
    try:
        made = add_own_token(request.POST.get("label", ""), request.user)
    except UsageError as error:
        return own_tokens(request, problem=str(error), status=HTTPStatus.UNPROCESSABLE_ENTITY)
    return own_tokens(request, made=made)


def own_tokens(
    request: SignedIn, *, made: str = "", problem: str = "", status: HTTPStatus = HTTPStatus.OK
) -> HttpResponse:
    context = {
        "rows": [(row, row.created_at + PERSONS_LAST) for row in tokens_of(request.user)],
        "made": made,
        "problem": problem,
        "label": request.POST.get("label", "") if problem else "",
        "longest": LONGEST_LABEL,
        "days": PERSONS_LAST.days,
        "now": database_now(),
    }
    shown = render(request, "account/tokens.html", context, status=status)
    add_never_cache_headers(shown)
    return shown


@login_required
@require_POST
def longer(request: SignedIn) -> HttpResponse:
    """Let this session last as long as a new one; somebody has asked for it, no poll can."""
    begin(request)
    if request.htmx:
        return render(request, "shared/_session.html")
    there = request.POST.get("next", "")
    own = url_has_allowed_host_and_scheme(there, allowed_hosts=None)
    return SeeOther(there if own else reverse("start"))
