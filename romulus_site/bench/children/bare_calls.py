"""What a write is measured against: the same two requests by plain `httpx`, and no ledger.

Each write is a POST with a key and a GET that checks its result, each over a connection of its own,
as the adapter makes them.
"""

from __future__ import annotations

import os
import ssl
import threading
from collections import deque
from uuid import UUID

import httpx
from uuid_utils.compat import uuid7

from romulus_site.bench.children.walking import Order, serve, taken
from romulus_site.bench.flows import REFUND

# A client loads every certificate of the machine unless given a context; here is no TLS.
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
PATH = "/keyed/v1/refunds"


class BareCalls:
    """A walk of bare calls; see `walking.Job`."""

    def __init__(self, order: Order) -> None:
        self.runs: deque[UUID] = deque(uuid7() for _ in range(order.runs * order.steps))
        self.failed = 0
        self.counting = threading.Lock()

    def warm(self) -> None:
        write(uuid7())

    def work(self) -> None:
        for key in taken(self.runs):
            if not write(key):
                with self.counting:
                    self.failed += 1

    def close(self) -> None:
        pass

    def undone(self) -> int:
        return self.failed


def write(key: UUID) -> bool:
    body = {**REFUND, "metadata": {"operation": str(key)}}
    made = call("POST", PATH, json=body, headers={"Idempotency-Key": str(key)})
    resource = made.json()["id"]
    return bool(call("GET", f"{PATH}/{resource}").json()["status"] == "succeeded")


def call(method: str, path: str, **given: object) -> httpx.Response:
    headers = {"Authorization": "Bearer acct_bench"} | dict(given.pop("headers", {}))  # type: ignore[call-overload]
    with httpx.Client(
        base_url=os.environ["ROMULUS_BENCH_DESTINATION"],
        headers=headers,
        verify=NO_CERTIFICATES,
        trust_env=False,
        timeout=30,
    ) as client:
        answer = client.request(method, path, **given)  # type: ignore[arg-type]
        answer.raise_for_status()
        return answer


def main() -> None:
    serve(BareCalls)
