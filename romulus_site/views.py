"""The frame's own views: what needs you, and what is answered on errors."""

from __future__ import annotations

from http import HTTPStatus

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe


@login_required
@require_safe
def needs_you(request: HttpRequest) -> HttpResponse:
    """The count in the navigation; 204 when it is the one that is `shown` already."""
    from reconciliation.selectors import needs_you_count

    count = needs_you_count(request.user)
    if str(count) == request.GET.get("shown"):
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    return render(request, "shared/_needs_you.html", {"count": count})


def not_allowed(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403: what the person may not do, in the words of whoever refused it."""
    # To htmx the sentences alone, so that no page is put into a panel of a page.
    htmx = request.headers.get("HX-Request") == "true"
    template = "shared/_not_allowed.html" if htmx else "403.html"
    return render(request, template, {"reason": str(exception)}, status=HTTPStatus.FORBIDDEN)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    """404: also for what the person may not see, so that nothing tells the two apart."""
    return render(request, "404.html", status=HTTPStatus.NOT_FOUND)
