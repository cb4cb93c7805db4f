"""Cancelling, pausing and resuming a run: asked before, done by POST, told who was first."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from workflows import access
from workflows.core.controls import Control
from workflows.core.words import is_storable, read_length, storable
from workflows.models import Run
from workflows.pages import Confirmation
from workflows.selectors.run_controls import confirmation_of
from workflows.services.audit import actor_of
from workflows.services.clock import database_now
from workflows.services.controls import control_run
from workflows.services.stopping import MAX_BY, MAX_REASON
from workflows.views.requests import SeeOther, SignedIn, moment

SAY_WHY = "Say why, for those who will wonder."
TOO_LONG = f"Say it in {MAX_REASON} characters of plain text at most."

asks_or_does = require_http_methods(["GET", "HEAD", "POST"])


@login_required
@asks_or_does
def run_cancel(request: SignedIn, run: UUID) -> HttpResponse:
    return controlled(request, run, Control.CANCEL)


@login_required
@asks_or_does
def run_pause(request: SignedIn, run: UUID) -> HttpResponse:
    return controlled(request, run, Control.PAUSE)


@login_required
@asks_or_does
def run_resume(request: SignedIn, run: UUID) -> HttpResponse:
    return controlled(request, run, Control.RESUME)


def controlled(request: SignedIn, run: UUID, control: Control) -> HttpResponse:
    """GET asks and changes nothing; POST does it, or says why it was not done."""
    found = access.controlled_run_for(request.user, run)
    question = confirmation_of(found, control, database_now())
    if request.method != "POST":
        return answered(request, question)
    reason = request.POST.get("reason", "").strip()
    question = replace(question, reason=reason)
    if not read_length(reason) or not is_storable(reason, MAX_REASON):
        wrong = replace(question, errors={"reason": TOO_LONG if reason else SAY_WHY})
        return answered(request, wrong, HTTPStatus.UNPROCESSABLE_ENTITY)
    by = storable(actor_of(request.user), MAX_BY)
    seen = moment(request.POST.get("paused_at", ""))
    outcome = control_run(found.pk, control, by=by, reason=reason, paused_at=seen)
    if outcome.theirs:
        told = replace(question, overtaken=outcome.sentence)
        return answered(request, told, HTTPStatus.CONFLICT)
    return to_the_run(request, found)


def answered(
    request: SignedIn, question: Confirmation, status: HTTPStatus = HTTPStatus.OK
) -> HttpResponse:
    template = "workflows/_confirm.html" if request.htmx else "workflows/confirm.html"
    return render(request, template, {"page": question, "now": database_now()}, status=status)


def to_the_run(request: SignedIn, run: Run) -> HttpResponse:
    url = reverse("run", args=[run.pk])
    if not request.htmx:
        return SeeOther(url)
    return HttpResponse(status=HTTPStatus.NO_CONTENT, headers={"HX-Redirect": url})
