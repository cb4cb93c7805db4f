"""One operation: read it, decide it, ask the provider about it again."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from http import HTTPStatus
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from reconciliation import access
from reconciliation.selectors.attempts import NOTHING_ATTEMPTED, Attempted
from reconciliation.selectors.case import load_case
from reconciliation.selectors.operation_page import page_of_case
from reconciliation.selectors.operation_stamp import operation_stamp, turns_at
from reconciliation.selectors.thread import thread_at
from reconciliation.services.asking import ask_for, may_ask
from reconciliation.views.deciding import (
    Context,
    DecidedCase,
    add_correction,
    decide,
    keep_draft,
    second,
)
from workflows.selectors.stamps import Stamp
from workflows.views.requests import Seen, SeeOther, SignedIn, asks_for


@login_required
@require_safe
def operation(request: SignedIn, operation: UUID) -> HttpResponse:
    """The case, what is new of it, or its evidence while a question is open."""
    polled, before = asks_for(request, "live"), Seen.by(request)
    stamp = stamp_of(request, operation)
    if polled and before.is_of(stamp):
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    context = context_of(request, operation, stamp=stamp)
    if asks_for(request, "evidence-cards"):
        return render(request, "reconciliation/_evidence_cards.html", context)
    if not polled:
        return render(request, "reconciliation/operation.html", context)
    context["news"] = before.shown != context["seen"].shown
    if before.shows(context["seen"]):
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    return render(request, "reconciliation/_refreshed.html", context)


@login_required
@require_POST
def operation_decide(request: SignedIn, operation: UUID) -> HttpResponse:
    """Record a decision on the hold that the form was read from."""
    return decide(request, case_of(request, operation))


@login_required
@require_POST
def operation_second(request: SignedIn, operation: UUID) -> HttpResponse:
    """Confirm, refuse or take back what is proposed on it."""
    return second(request, case_of(request, operation))


@login_required
@require_POST
def operation_correct(request: SignedIn, operation: UUID) -> HttpResponse:
    """Record what was wrong with the decision in force."""
    return add_correction(request, case_of(request, operation))


@login_required
@require_POST
def operation_draft(request: SignedIn, operation: UUID) -> HttpResponse:
    """Keep what is typed in its decision form."""
    return keep_draft(request, case_of(request, operation))


@login_required
@require_POST
def operation_ask(request: SignedIn, operation: UUID) -> HttpResponse:
    """Ask the provider again; what it says, or that it is away, is evidence on the page."""
    found = access.operation_for(request.user, operation)
    ask_for(found, request.user)
    if not request.htmx:
        return SeeOther(f"{reverse('operation', args=[found.pk])}#says")
    return render(request, "reconciliation/_refreshed.html", context_of(request, found.pk))


def stamp_of(request: SignedIn, operation: UUID) -> Stamp:
    return operation_stamp(request.user, operation).read_in(request.profile.zone)


def case_of(request: SignedIn, operation: UUID) -> DecidedCase:
    found = access.operation_for(request.user, operation)
    return DecidedCase(
        id=found.pk,
        url=reverse("operation", args=[found.pk]),
        template="reconciliation/operation.html",
        form="reconciliation/_decide.html",
        decided="reconciliation/_decided.html",
        context=partial(context_of, request, found.pk),
        hold=lambda hold: found.holds.filter(pk=hold).first(),
    )


def context_of(
    request: SignedIn,
    operation: UUID,
    attempted: Attempted = NOTHING_ATTEMPTED,
    stamp: Stamp | None = None,
) -> Context:
    """One context for the page and all its fragments, read anew."""
    # What changes from here on is news to the first poll.
    stamp = stamp or stamp_of(request, operation)
    now = stamp.now.astimezone(request.profile.zone)
    found = access.operation_for(request.user, operation)
    case = load_case(found, request.user, now)
    page = page_of_case(case, attempted)
    seen = Seen.of(stamp, turns_at(case), page.seen)
    return {
        "page": replace(page, seen=str(seen)),
        "seen": seen,
        "news": True,
        "now": now,
        "may_ask": may_ask(found, case.hold, request.user),
        # Asked for only where something of it is shown.
        "thread": cache(partial(thread_at, {"operation": found}, request.user, now)),
    }
