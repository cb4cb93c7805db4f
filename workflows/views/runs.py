"""The runs list and one run."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import reswap, retarget

from workflows import access
from workflows.pages import MOST_EXPORTED
from workflows.selectors.list_stamps import runs_stamp
from workflows.selectors.row_changes import changes_since, seen_of
from workflows.selectors.run_export import COLUMNS, run_rows
from workflows.selectors.run_list import Asked, listed, run_list
from workflows.selectors.run_page import TRUE_SCALE, run_page
from workflows.selectors.run_stamp import run_stamp
from workflows.views.requests import Seen, SignedIn, asks_for, moment
from workflows.views.tables import Exported, as_table


@login_required
@require_safe
def runs(request: SignedIn) -> HttpResponse:
    """The runs that this person may see, newest first; to a poll the rows that have changed."""
    asked, before = asked_by(request), Seen.by(request)
    polled = asks_for(request, "runs-poll")
    stamp = runs_stamp(request.user, asked).read_in(request.profile.zone)
    if polled and before.is_of(stamp):
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    now = stamp.now.astimezone(request.profile.zone)
    page, until = run_list(access.visible_runs(request.user), now, asked)
    known = Seen.of(stamp, until, seen_of(page))
    if polled and before.shows(known):
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    context = {"page": page, "seen": str(known), "now": now}
    # In another zone, or on another day, all of its times are told otherwise.
    if polled and before.told == known.told and (changes := changes_since(before.shown, page)):
        return render(request, "workflows/_runs_changed.html", context | {"changes": changes})
    if polled:
        whole = render(request, "workflows/_runs.html", context)
        return retarget(reswap(whole, "outerHTML"), "#runs")
    fragment = asks_for(request, "runs")
    return render(request, "workflows/_runs.html" if fragment else "workflows/runs.html", context)


@login_required
@require_POST
def runs_export(request: SignedIn) -> StreamingHttpResponse:
    """The runs that the list shows under its filters, as a file."""
    asked = asked_by(request)
    among = listed(access.visible_runs(request.user), asked)
    rows = run_rows(among, MOST_EXPORTED)
    return as_table(request, Exported("runs", asked.query(), among, COLUMNS, rows))


def asked_by(request: SignedIn) -> Asked:
    names = ("state", "children", "parent", "before", "after")
    return Asked(**{name: request.GET.get(name, "") for name in names})


@login_required
@require_safe
def run(request: SignedIn, run: UUID) -> HttpResponse:
    """One run, or what is new of it."""
    polled, before = asks_for(request, "live"), Seen.by(request)
    stamp = run_stamp(request.user, run).read_in(request.profile.zone)
    if polled and before.is_of(stamp):
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    found = access.run_for(request.user, run)
    now = stamp.now.astimezone(request.profile.zone)
    page, until = run_page(
        found,
        request.user,
        now,
        payloads=access.may_view_payloads(request.user, found.tenant),
        control=access.may_control(request.user, found.tenant),
        folded=request.GET.get("scale") != TRUE_SCALE,
        before=moment(request.GET.get("before", "")),
        only=request.GET.get("log", ""),
        children=request.GET.get("children", ""),
    )
    known = Seen.of(stamp, until, page.seen)
    if polled and before.shows(known):
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    context = {"page": replace(page, seen=str(known)), "now": now}
    template = "workflows/_refreshed.html" if polled else "workflows/run.html"
    return render(request, template, context)
