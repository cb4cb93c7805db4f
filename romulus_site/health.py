"""Whether this process answers, and whether the system can work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from celery import current_app
from django.db import Error, connection
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from workflows.selectors import live_workers

# Whoever asks often is told what was found a moment ago; a broker is not asked for each of them.
FRESH_SECONDS = 2.0
BROKER_SECONDS = 3

READY = "The console, its database and the broker answer.\n"
NO_WORKER = "No worker is alive: runs wait until one is.\n"
DATABASE_AWAY = (
    "The database does not answer. Nothing is sent and nothing can be decided until it does; work "
    "goes on by itself after that.\n"
)
BROKER_AWAY = (
    "The broker does not answer: no worker is told of what is due. Runs can be started and "
    "decided; they wait, nothing is lost, and work goes on by itself when the broker is back.\n"
)
UNTOLD = (
    "No live worker's messages reach the broker, so none is told of what is due. Runs can be "
    "started and decided; they wait, nothing is lost, and work goes on by itself after that.\n"
)


@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """The process answers. Asks nothing else, so that a database that is away restarts nobody."""
    return HttpResponse("The console answers.\n", content_type="text/plain")


@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    """Database and broker answer too, here and to the workers; 503 while one does not."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        workers = list(live_workers().values_list("broker_away_since", flat=True))
    except Error:
        return not_ready(DATABASE_AWAY)
    if not broker_answers():
        return not_ready(BROKER_AWAY)
    if workers and None not in workers:
        return not_ready(UNTOLD)
    return HttpResponse(READY if workers else READY + NO_WORKER, content_type="text/plain")


def not_ready(why: str) -> HttpResponse:
    return HttpResponse(why, "text/plain", status=503, headers={"Retry-After": "5"})


# --- the broker -------------------------------------------------------------------------------


def ask_broker() -> bool:
    """Whether a new connection to the broker can be made."""
    try:
        with current_app.connection_for_write(connect_timeout=BROKER_SECONDS) as broker:
            broker.ensure_connection(max_retries=0, timeout=BROKER_SECONDS)
    except Exception:  # noqa: BLE001 (each broker's client has its own errors)
        return False
    return True


@dataclass
class Lately:
    """What `ask` found, asked again when that is not fresh any more."""

    ask: Callable[[], bool]
    found: bool = False
    asked_at: float = float("-inf")

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def __call__(self) -> bool:
        with self._lock:
            if time.monotonic() - self.asked_at > FRESH_SECONDS:
                self.found = self.ask()
                self.asked_at = time.monotonic()
            return self.found


broker_answers = Lately(ask_broker)
