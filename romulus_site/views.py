"""The frame's own views: what needs you, and what is answered on errors."""

from __future__ import annotations

import secrets
from datetime import timedelta
from http import HTTPStatus

import structlog
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe
from django_htmx.http import trigger_client_event

from workflows.views.requests import SignedIn, moment

SAID_EVERY = timedelta(minutes=1)
log = structlog.get_logger(__name__)


@login_required
@require_safe
def needs_you(request: SignedIn) -> HttpResponse:
    """The count in the navigation; 204 when it is the one that is `shown` already.

    What became of the reader's own cases after `since` is said aloud, at most once a minute.
    """
    from reconciliation.access import count_open_holds
    from reconciliation.selectors.overview_needs import own_news

    count, now = count_open_holds(request.user)
    since = moment(request.GET.get("since", "")) or now
    news = own_news(request.user, since, now) if now - since >= SAID_EVERY else ""
    if not news and str(count) == request.GET.get("shown"):
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    context = {"count": count, "now": now if news else since}
    answer = render(request, "shared/_needs_you.html", context)
    return trigger_client_event(answer, "say", {"text": news}) if news else answer


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
