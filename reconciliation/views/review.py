"""The review queue."""

from __future__ import annotations

from http import HTTPStatus

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from reconciliation.selectors import news_since, review_page
from workflows.services.clock import database_now
from workflows.views.requests import STOP_POLLING, SignedIn, asks_for


@login_required
@require_safe
def review(request: SignedIn) -> HttpResponse:
    """The open holds that this person may see, the most urgent first; or what is new there."""
    if asks_for(request, "news"):
        return news(request, request.GET.get("seen", ""))
    now = database_now()
    before, after = request.GET.get("before", ""), request.GET.get("after", "")
    page = review_page(request.user, now, before=before, after=after)
    fragment = asks_for(request, "queue")
    template = "reconciliation/_queue.html" if fragment else "reconciliation/review.html"
    return render(request, template, {"page": page, "now": now})


def news(request: SignedIn, seen: str) -> HttpResponse:
    """What happened since the queue was `seen`; rows never move under a pointer by themselves."""
    said = news_since(request.user, seen)
    if not said:
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    # The reader is told once, and asks for the rest.
    return render(request, "reconciliation/_news.html", {"news": said}, status=STOP_POLLING)
