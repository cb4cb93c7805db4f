"""Where one is signed in."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST

from romulus_site.accounts.sessions import begin, end_sessions, session_rows
from workflows.services.clock import database_now
from workflows.views.requests import SeeOther, SignedIn


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def sessions(request: SignedIn) -> HttpResponse:
    """The person's open sessions; POST ends one of them, or all but this one."""
    current = request.session.session_key
    if request.method != "POST":
        context = {"rows": session_rows(request.user, current), "now": database_now()}
        return render(request, "usersessions/usersession_list.html", context)
    named = request.POST.get("session", "")
    if named.isdecimal():
        end_sessions(request.user, only=int(named), keep=current)
    elif named == "others":
        end_sessions(request.user, keep=current)
    return SeeOther(reverse("usersessions_list"))


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
