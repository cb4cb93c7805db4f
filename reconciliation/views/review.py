"""The review queue: the list, what is new in it, the options of its filters, a row's preview."""

from __future__ import annotations

from http import HTTPStatus
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from reconciliation import access
from reconciliation.core.queue_views import looked_at
from reconciliation.queue_pages import MOST_COLUMNS
from reconciliation.selectors import news_since, review_page
from reconciliation.selectors.queue import url_at
from reconciliation.selectors.queue_chips import choices
from reconciliation.selectors.queue_preview import preview_of
from workflows.services.clock import database_now
from workflows.views.requests import STOP_POLLING, SignedIn, asks_for


@login_required
@require_safe
def review(request: SignedIn) -> HttpResponse:
    """The open holds that this person may see, as the address asks for them; or what is new."""
    query = request.GET.dict()
    looked, now = looked_at(query), database_now()
    if asks_for(request, "news"):
        said = news_since(request.user, now, looked, query.get("seen", ""))
        return news(request, said, url_at(looked))
    page = review_page(
        request.user,
        now,
        looked,
        before=query.get("before", ""),
        after=query.get("after", ""),
        focus=chip_used(request),
    )
    fragment = asks_for(request, "queue")
    template = "reconciliation/_queue.html" if fragment else "reconciliation/review.html"
    return render(request, template, {"page": page, "now": now})


def news(request: SignedIn, said: str, url: str) -> HttpResponse:
    """What happened since the list was seen; rows never move under a pointer by themselves."""
    if not said:
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    # The reader is told once, and asks for the rest.
    context = {"news": said, "url": url}
    return render(request, "reconciliation/_news.html", context, status=STOP_POLLING)


def chip_used(request: SignedIn) -> str:
    """The filter whose option was chosen: its menu is gone, and the focus goes to the filter."""
    part, name, *_ = [*(request.htmx.trigger or "").split("-"), ""]
    return name if part == "option" else ""


@login_required
@require_safe
def review_choices(request: SignedIn, name: str) -> HttpResponse:
    """The options of one filter, each a link to the list."""
    page = choices(name, looked_at(request.GET.dict()), request.user)
    if page is None:
        raise Http404
    template = "reconciliation/_choices.html" if request.htmx else "reconciliation/choices.html"
    return render(request, template, {"page": page, "now": database_now()})


@login_required
@require_safe
def review_preview(request: SignedIn, hold: UUID) -> HttpResponse:
    """A case in short, under its row."""
    found, now = access.hold_for(request.user, hold), database_now()
    # A row of the list spans its columns.
    narrow = request.GET.get("columns") == str(MOST_COLUMNS - 1)
    context = {
        "page": preview_of(found, request.user, now),
        "columns": MOST_COLUMNS - narrow,
        "now": now,
    }
    template = "reconciliation/_preview.html" if request.htmx else "reconciliation/preview.html"
    return render(request, template, context)
