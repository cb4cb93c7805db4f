"""`/metrics`: how the system is doing, for Prometheus.

For whoever has the token (`ROMULUS_METRICS_TOKEN`), as `Authorization: Bearer …`; without a token
for this very machine alone, asked directly and not through a proxy. For others it is not there.
"""

from __future__ import annotations

import ipaddress
import secrets

import structlog
from django.conf import settings
from django.db import Error, connection, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from reconciliation.selectors import measures as of_writes
from workflows.core.measures import CONTENT_TYPE, as_text
from workflows.selectors import measures as of_runs
from workflows.services.clock import database_now

log = structlog.get_logger(__name__)

# A scrape that would take longer tells more by failing than it costs others by going on.
TIMEOUT = "5s"
# What a proxy in front adds: then the address that we see is the proxy's.
FORWARDED = ("HTTP_FORWARDED", "HTTP_X_FORWARDED_FOR", "HTTP_X_REAL_IP")


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Everything that is measured; 503 while the database is away, or too slow to be asked."""
    if not may_read(request):
        raise Http404
    try:
        return HttpResponse(measured(), content_type=CONTENT_TYPE)
    except Error:
        log.warning("metrics.not_measured", exc_info=True)
        return HttpResponse("The database does not answer in time.\n", CONTENT_TYPE, status=503)


def measured() -> str:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = '{TIMEOUT}'")
        now = database_now()
        return as_text((*of_runs.measures(now), *of_writes.measures(now)))


def may_read(request: HttpRequest) -> bool:
    token = settings.ROMULUS_METRICS_TOKEN
    if token:
        given = request.headers.get("Authorization", "")
        return secrets.compare_digest(given.encode(), f"Bearer {token}".encode())
    forwarded = any(name in request.META for name in FORWARDED)
    return not forwarded and is_loopback(request.META.get("REMOTE_ADDR", ""))


def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
