"""A run that is held itself, where no operation is: read it, decide it."""

from __future__ import annotations

from functools import cache, partial
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from reconciliation import access
from reconciliation.models import Hold
from reconciliation.selectors import held_run_page
from reconciliation.selectors.attempts import NOTHING_ATTEMPTED, Attempted
from reconciliation.selectors.thread import thread_at
from reconciliation.views.deciding import (
    Context,
    DecidedCase,
    add_correction,
    decide,
    keep_draft,
    second,
)
from workflows.services.clock import database_now
from workflows.views.requests import SignedIn


@login_required
@require_safe
def held_run(request: SignedIn, run: UUID) -> HttpResponse:
    """The case of a run that is, or was last, held itself."""
    return render(request, "reconciliation/held_run.html", context_of(request, run))


@login_required
@require_POST
def held_run_decide(request: SignedIn, run: UUID) -> HttpResponse:
    """Record a decision on the hold that the form was read from."""
    return decide(request, case_of(request, run))


@login_required
@require_POST
def held_run_second(request: SignedIn, run: UUID) -> HttpResponse:
    """Confirm, refuse or take back what is proposed on it."""
    return second(request, case_of(request, run))


@login_required
@require_POST
def held_run_correct(request: SignedIn, run: UUID) -> HttpResponse:
    """Record what was wrong with the decision in force."""
    return add_correction(request, case_of(request, run))


@login_required
@require_POST
def held_run_draft(request: SignedIn, run: UUID) -> HttpResponse:
    """Keep what is typed in its decision form."""
    return keep_draft(request, case_of(request, run))


def visible(request: SignedIn, run: UUID) -> QuerySet[Hold]:
    holds = access.visible_holds(request.user).filter(run=run, operation=None)
    return holds.select_related("run", "queue", "assignee", "proposal__by")


def hold_for(request: SignedIn, run: UUID) -> Hold:
    """The run's latest hold; raises `Http404` when there is none that this person may see."""
    found = visible(request, run).order_by("-opened_at", "-pk").first()
    if found is None:
        raise Http404
    return found


def case_of(request: SignedIn, run: UUID) -> DecidedCase:
    found = hold_for(request, run)
    return DecidedCase(
        id=run,
        url=reverse("held_run", args=[found.run_id]),
        template="reconciliation/held_run.html",
        form="reconciliation/_run_decide.html",
        decided="reconciliation/_run_decided.html",
        context=partial(context_of, request, run),
        hold=lambda hold: visible(request, run).filter(pk=hold).first(),
    )


def context_of(request: SignedIn, run: UUID, attempted: Attempted = NOTHING_ATTEMPTED) -> Context:
    """One context for the page and its fragments, read anew."""
    now = database_now().astimezone(request.profile.zone)
    found = hold_for(request, run)
    return {
        "page": held_run_page(found, request.user, now, attempted),
        # Asked for only where something of it is shown.
        "thread": cache(
            partial(thread_at, {"run": found.run_id, "operation": None}, request.user, now)
        ),
        "now": now,
    }
