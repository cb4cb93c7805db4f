"""The product's addresses, and beside them the bare view that its ingress is measured against."""

from __future__ import annotations

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import include, path
from django.views.decorators.csrf import csrf_exempt
from uuid_utils.compat import uuid7

INSERT = "INSERT INTO bench_delivery (id, at, body) VALUES (%s, statement_timestamp(), %s)"
TABLE = """
    CREATE TABLE IF NOT EXISTS bench_delivery (
        id uuid PRIMARY KEY, at timestamptz NOT NULL, body bytea NOT NULL
    )
"""


@csrf_exempt
def bare(request: HttpRequest) -> HttpResponse:
    """Keep the body in one row, and nothing else: no signature, no look at what it says."""
    with connection.cursor() as cursor:
        cursor.execute(INSERT, [uuid7(), request.body])
    return HttpResponse(status=202)


urlpatterns = [path("bench/bare/", bare), path("", include("romulus_site.urls"))]
