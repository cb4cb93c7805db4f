"""Whether this process answers, and whether it can work."""

from __future__ import annotations

from django.db import Error, connection
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe


@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """The process answers. Asks nothing else, so that a database that is away restarts nobody."""
    return HttpResponse("The console answers.\n", content_type="text/plain")


@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    """The database answers too; 503 while it does not."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error:
        return HttpResponse(
            "The database does not answer. Nothing is sent and nothing can be decided until it "
            "does; work goes on by itself after that.\n",
            content_type="text/plain",
            status=503,
            headers={"Retry-After": "5"},
        )
    return HttpResponse("The console and its database answer.\n", content_type="text/plain")
