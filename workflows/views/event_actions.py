"""Acting on an event: asked before, done by POST, told who was first. And sending one by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from workflows import access
from workflows.core.errors import UsageError
from workflows.core.event_words import EventAction
from workflows.core.words import is_storable, read_length, storable
from workflows.event_pages import Question, SendQuestion
from workflows.models import Event, EventSource
from workflows.selectors.event_questions import question_of, send_question, wait_named
from workflows.services.audit import actor_of
from workflows.services.clock import database_now
from workflows.services.event_items import Done, attach, dismiss, restore
from workflows.services.event_replay import replay
from workflows.services.event_sending import send_event
from workflows.services.stopping import MAX_BY, MAX_REASON
from workflows.views.requests import SeeOther, SignedIn

SAY_WHY = "Say why, for those who will wonder."
TOO_LONG = f"Say it in {MAX_REASON} characters of plain text at most."
CHOOSE = "Choose the wait that is meant, or name its run: one that waits now."
SENT = ("source", "type", "correlation", "data", "token")

asks_or_does = require_http_methods(["GET", "HEAD", "POST"])


@login_required
@asks_or_does
def event_attach(request: SignedIn, event: UUID) -> HttpResponse:
    return acted(request, event, EventAction.ATTACH)


@login_required
@asks_or_does
def event_dismiss(request: SignedIn, event: UUID) -> HttpResponse:
    return acted(request, event, EventAction.DISMISS)


@login_required
@asks_or_does
def event_restore(request: SignedIn, event: UUID) -> HttpResponse:
    return acted(request, event, EventAction.RESTORE)


@login_required
@asks_or_does
def event_replay(request: SignedIn, event: UUID) -> HttpResponse:
    return acted(request, event, EventAction.REPLAY)


def acted(request: SignedIn, event: UUID, action: EventAction) -> HttpResponse:
    """GET asks and changes nothing; POST does it, or says why it was not done."""
    found = access.controlled_event_for(request.user, event)
    given = request.POST if request.method == "POST" else request.GET
    typed = {name: given.get(name, "").strip() for name in ("reason", "wait", "run")}
    question = question_of(found, action, typed)
    if request.method != "POST":
        return answered(request, question)
    wait = wait_named(found, typed) if action is EventAction.ATTACH else None
    errors = missing(action, typed["reason"], wait)
    if errors:
        return answered(request, replace(question, errors=errors), HTTPStatus.UNPROCESSABLE_ENTITY)
    try:
        done = do(request, found, action, typed["reason"], wait)
    except UsageError:  # no wait of this tenant
        wrong = replace(question, errors={"wait": CHOOSE})
        return answered(request, wrong, HTTPStatus.UNPROCESSABLE_ENTITY)
    if not done.done or done.theirs:
        return answered(request, replace(question, overtaken=done.sentence), HTTPStatus.CONFLICT)
    return see(request, reverse("event", args=[found.pk]))


def missing(action: EventAction, reason: str, wait: UUID | None) -> dict[str, str]:
    """What is wrong with what was typed, by field."""
    errors = {}
    if action is EventAction.ATTACH and wait is None:
        errors["wait"] = CHOOSE
    if not read_length(reason) or not is_storable(reason, MAX_REASON):
        errors["reason"] = TOO_LONG if reason else SAY_WHY
    return errors


def do(
    request: SignedIn, event: Event, action: EventAction, reason: str, wait: UUID | None
) -> Done:
    by = who_acts(request)
    match action:
        case EventAction.ATTACH:
            assert wait is not None, "it was asked for"
            return attach(event.pk, wait, by=by, reason=reason)
        case EventAction.DISMISS:
            return dismiss(event.pk, by=by, reason=reason)
        case EventAction.RESTORE:
            return restore(event.pk, by=by, reason=reason)
        case EventAction.REPLAY:
            return replay(event.pk, by=by, reason=reason)


def who_acts(request: SignedIn) -> str:
    return storable(actor_of(request.user), MAX_BY)


def answered(
    request: SignedIn, question: Question, status: HTTPStatus = HTTPStatus.OK
) -> HttpResponse:
    template = "workflows/_event_action.html" if request.htmx else "workflows/event_action.html"
    return render(request, template, {"page": question, "now": database_now()}, status=status)


def see(request: SignedIn, url: str) -> HttpResponse:
    if not request.htmx:
        return SeeOther(url)
    return HttpResponse(status=HTTPStatus.NO_CONTENT, headers={"HX-Redirect": url})


# --- sending ----------------------------------------------------------------------------------


@login_required
@asks_or_does
def event_send(request: SignedIn) -> HttpResponse:
    """Send an event of an internal source; pressed twice, the form's token sends it once."""
    sources = list(access.sendable_sources(request.user))
    if not sources:
        raise Http404
    given: Mapping[str, Any] = request.POST if request.method == "POST" else request.GET
    typed = {name: str(given.get(name, "")) for name in SENT}
    if request.method != "POST":
        return form(request, send_question(sources, typed, {}))
    source = next((each for each in sources if each.slug == typed["source"]), None)
    try:
        event = sent(request, source, typed)
    except UsageError as error:
        field, _, sentence = str(error).partition(": ")
        errors = {field: sentence} if field in SENT else {"": str(error)}
        question = send_question(sources, typed, errors)
        return form(request, question, HTTPStatus.UNPROCESSABLE_ENTITY)
    return see(request, reverse("event", args=[event]))


def sent(request: SignedIn, source: EventSource | None, typed: Mapping[str, str]) -> UUID:
    if source is None:
        raise UsageError("source: Choose whose event it is.")
    for name in ("type", "correlation"):
        if not typed[name].strip():
            raise UsageError(f"{name}: Without a {name} no wait can take it.")
    receipt = send_event(
        source,
        type=typed["type"],
        correlation=typed["correlation"],
        data=typed["data"].strip() or "null",
        event_id=typed["token"][:64],
        by=who_acts(request),
    )
    return receipt.event


def form(
    request: SignedIn, question: SendQuestion, status: HTTPStatus = HTTPStatus.OK
) -> HttpResponse:
    context = {"page": question, "now": database_now()}
    return render(request, "workflows/event_send.html", context, status=status)
