"""What is done to one held case from the queue or its page: whose it is, and when it comes back."""

from __future__ import annotations

from functools import partial
from uuid import UUID, uuid4

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from reconciliation import access
from reconciliation.models import Hold
from reconciliation.queue_pages import WorkForm
from reconciliation.review_forms import AssignForm, UntilForm
from reconciliation.selectors.queue import subject_of, url_of
from reconciliation.services.assigning import assign, claim
from reconciliation.services.snoozing import end_reminder, remind, snooze, wake
from reconciliation.views.working import act, back_from, work
from workflows.services.clock import database_now
from workflows.views.requests import SignedIn

asks_or_does = require_http_methods(["GET", "HEAD", "POST"])


def page_for(
    request: SignedIn,
    hold: Hold,
    name: str,
    title: str,
    button: str,
    done: str,
    lines: tuple[str, ...] = (),
) -> WorkForm:
    subject = subject_of(hold)
    return WorkForm(
        title=title,
        subject=subject,
        done=f"{done}: {subject}",
        url=reverse(name, args=[hold.pk]),
        button=button,
        back=back_from(request, url_of(hold)),
        lines=lines,
    )


# --- whose it is ------------------------------------------------------------------------------


@login_required
@require_POST
def review_claim(request: SignedIn, hold: UUID) -> HttpResponse:
    found = access.hold_for(request.user, hold)
    page = page_for(request, found, "review_claim", "Take this case", "Take it", "Taken")
    return act(request, page, partial(claim, found.pk, request.user))


@login_required
@require_POST
def review_put_back(request: SignedIn, hold: UUID) -> HttpResponse:
    found = access.hold_for(request.user, hold)
    page = page_for(
        request, found, "review_put_back", "Put this case back", "Put it back", "Put back"
    )
    me = request.user
    return act(request, page, partial(assign, found.pk, None, me, seen=me.pk))


@login_required
@asks_or_does
def review_assign(request: SignedIn, hold: UUID) -> HttpResponse:
    found = access.hold_for(request.user, hold)
    people = access.deciders_of(found)
    seen = {"seen": found.assignee_id, "token": uuid4()}
    form = AssignForm(request.POST or None, people, initial=seen)
    mine = found.assignee_id == request.user.pk
    title = "Hand this case over" if mine else "Assign this case"
    button = "Hand it over" if mine else "Assign it"
    lines = ("They are named as its owner from then on. Nothing else of the case changes.",)
    done = "Handed over" if mine else "Assigned"
    page = page_for(request, found, "review_assign", title, button, done, lines)

    def do() -> None:
        given = form.cleaned_data
        assign(
            found.pk,
            given["to"],
            request.user,
            seen=given["seen"],
            note=given["note"],
            token=given["token"],
        )

    return work(request, page, form, do)


# --- when it comes back -----------------------------------------------------------------------


@login_required
@asks_or_does
def review_snooze(request: SignedIn, hold: UUID) -> HttpResponse:
    found, now = access.hold_for(request.user, hold), database_now()
    form = UntilForm(request.POST or None, request.profile.zone, now)
    lines = (
        "It leaves the lists Mine and Team for everybody until then, and comes back by itself.",
        "When it is due stays, and so does who is told when it is late. All held keeps showing it.",
    )
    page = page_for(
        request, found, "review_snooze", "Snooze this case", "Snooze it", "Snoozed", lines
    )
    return work(request, page, form, lambda: snooze(found.pk, request.user, form.at(now)))


@login_required
@require_POST
def review_wake(request: SignedIn, hold: UUID) -> HttpResponse:
    found = access.hold_for(request.user, hold)
    page = page_for(
        request, found, "review_wake", "End the snooze", "End it", "Back from its snooze"
    )
    return act(request, page, partial(wake, found.pk, request.user))


@login_required
@asks_or_does
def review_remind(request: SignedIn, hold: UUID) -> HttpResponse:
    found, now = access.hold_for(request.user, hold), database_now()
    form = UntilForm(request.POST or None, request.profile.zone, now)
    form.fields["within"].label = "When?"
    lines = ("Only you are reminded. A reminder that you set before is moved to this time.",)
    page = page_for(
        request,
        found,
        "review_remind",
        "Remind me of this case",
        "Remind me",
        "Reminder set",
        lines,
    )
    return work(request, page, form, lambda: remind(found.pk, request.user, form.at(now)))


@login_required
@require_POST
def review_reminded(request: SignedIn, hold: UUID) -> HttpResponse:
    """The reminder has done its work, or is wanted no more."""
    found = access.hold_for(request.user, hold)
    page = page_for(
        request, found, "review_reminded", "End the reminder", "End it", "Reminder ended"
    )
    return act(request, page, partial(end_reminder, found.pk, request.user))
