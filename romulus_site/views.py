"""The frame's own views: what needs you, and what is answered on errors."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import structlog
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_safe
from django_htmx.http import trigger_client_event

from workflows.views.requests import SignedIn, moment, nothing_new

SAID_EVERY = timedelta(minutes=1)
log = structlog.get_logger(__name__)


@login_required
@require_safe
def needs_you(request: SignedIn) -> HttpResponse:
    """How many cases there are, wherever the page says it; 204 while nothing has become of any
    since they were `seen`.

    What became of the reader's own cases after `since` is said aloud, at most once a minute.
    """
    from reconciliation.selectors.case_stamp import cases_seen
    from reconciliation.selectors.frame import frame_of
    from reconciliation.selectors.overview_needs import own_news

    seen, now = cases_seen(request.user)
    if (same := nothing_new(request, seen)) is not None:
        return same
    since = moment(request.GET.get("since", "")) or now
    may_speak = now - since >= SAID_EVERY
    news = own_news(request.user, since, now) if may_speak else ""
    frame = frame_of(request.user, now)
    context = {
        "count": frame.needs_you,
        "views": frame.views,
        # Until the minute is over the next poll looks again, whether or not anything is new then.
        "seen": seen if may_speak else "",
        "now": now if news else since,
        "queue": queue_beside(request, now),
    }
    answer = render(request, "shared/_counts.html", context)
    return trigger_client_event(answer, "say", {"text": news}) if news else answer


def queue_beside(request: SignedIn, now: datetime) -> Any:
    """The counts on the page that asks, where that is the review queue; else None."""
    from reconciliation.core.queue_views import looked_at
    from reconciliation.selectors.queue import queue_counts

    page = urlsplit(request.htmx.current_url_abs_path or "")
    if page.path != reverse("review"):
        return None
    return queue_counts(request.user, now, looked_at(dict(parse_qsl(page.query))))


def not_read(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    """400: what cannot be read. The request is not looked at again, as Django's own answer does
    for a token that this page has no use for: it could not be read then, either."""
    page = render_to_string("400.html", {})
    return HttpResponse(page, status=HTTPStatus.BAD_REQUEST)


def not_allowed(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403: what the person may not do, in the words of whoever refused it."""
    # To htmx the sentences alone, so that no page is put into a panel of a page.
    htmx = request.headers.get("HX-Request") == "true"
    template = "shared/_not_allowed.html" if htmx else "403.html"
    return render(request, template, {"reason": str(exception)}, status=HTTPStatus.FORBIDDEN)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    """404: also for what the person may not see, so that nothing tells the two apart."""
    return render(request, "404.html", status=HTTPStatus.NOT_FOUND)


def broken(request: HttpRequest) -> HttpResponse:
    """500: what to do, and what to quote. Nothing of the frame, which may be what is broken."""
    reference = f"err_{secrets.token_hex(5)}"
    log.error("page.broken", reference=reference, exc_info=True)
    again = request.get_full_path() if request.method == "GET" else ""
    page = render_to_string("500.html", {"reference": reference, "again": again})
    return HttpResponse(page, status=HTTPStatus.INTERNAL_SERVER_ERROR)
