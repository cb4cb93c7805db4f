"""Case A01: the broker hands the same message to a second worker while the first still works on it.

Shrunk: messages are invisible for 1 s instead of 20; the lease is 3 s; payfake answers, instead of
after 70 s, when the message was delivered again and the lease was renewed. Late acknowledgement,
which the product does not use, is turned on for the test.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.changed_settings import changing
from tests.acceptance.payfake import (
    HELD_BACK_SECONDS,
    all_over,
    attempts,
    effects,
    explained,
    ledger,
    order_run,
    payfake,
    sends,
    wait_until_sent,
)
from tests.brokers import broker_of_machine
from tests.destination import RunningDestination
from tests.waiting import wait_for
from tests.workers import LEASE_SECONDS, Crew, WorkerProcess
from workflows.models import Run

pytestmark = pytest.mark.processes

ORDER = "ORD-7001"
TOLD = re.compile(r"Task workflows.tasks.advance\[(.*)\] (received|succeeded)")
INVISIBLE = {
    "pgmq": {"visibility_timeout": 1},
    "redis": {
        "visibility_timeout": 1,
        # It looks for what is to be delivered again each 100 s by default.
        "unacked_restore_interval": 0.2,
        "unacked_restore_throttle": 1,
    },
}


@contextmanager
def redelivering(workers: Crew, scheme: str) -> Iterator[None]:
    """Workers are given a message again that is not acknowledged within a second."""
    late: dict[str, Any] = {
        "CELERY_TASK_ACKS_LATE": True,
        "CELERY_BROKER_TRANSPORT_OPTIONS": INVISIBLE[scheme],
    }
    if scheme == "pgmq":
        workers.environment |= changing(**late)
        yield
        return
    with broker_of_machine(scheme) as broker:
        options = broker.settings["CELERY_BROKER_TRANSPORT_OPTIONS"] | INVISIBLE[scheme]
        given = broker.settings | late | {"CELERY_BROKER_TRANSPORT_OPTIONS": options}
        workers.environment |= changing(**given) | {"BROKER_URL": broker.url()}
        workers.queues = ",".join(broker.queues)
        yield


def told(crew: list[WorkerProcess], what: str) -> Counter[str]:
    """How often each message was `received` by a worker, or `succeeded`, as their logs tell."""
    events = [json.loads(line)["event"] for each in crew for line in lines_of(each)]
    return Counter(
        found[1] for event in events if (found := TOLD.match(event)) and found[2] == what
    )


def redelivered(crew: list[WorkerProcess]) -> list[str]:
    return [message for message, times in told(crew, "received").items() if times > 1]


def is_renewed(run: Run) -> bool:
    run.refresh_from_db()
    assert run.claimed_at is not None
    assert run.lease_expires_at is not None
    return run.lease_expires_at > run.claimed_at + timedelta(seconds=LEASE_SECONDS)


def lines_of(worker: WorkerProcess) -> list[str]:
    return [line for line in worker.log.read_text().splitlines() if line.startswith("{")]


@pytest.mark.parametrize("scheme", ["pgmq", "redis"])
def test_a01_a_message_that_is_delivered_twice_is_worked_on_once(
    workers: Crew, destination: RunningDestination, tmp_path: Path, scheme: str
) -> None:
    payfake(destination)
    destination.client.arm("apply_then_delay", seconds=HELD_BACK_SECONDS, path="*refunds")
    with redelivering(workers, scheme):
        workers.log_level = "INFO"
        crew = workers.start_all(2)
        run = order_run(tmp_path, ORDER)
        operation = wait_until_sent(destination, run)
        wait_for(lambda: redelivered(crew), "its message is delivered again")
        (message, *_) = redelivered(crew)
        wait_for(lambda: told(crew, "succeeded")[message], "the second delivery has ended")
        run.refresh_from_db()
        assert (run.state, run.step) == ("running", "refund")  # while the first is at it
        assert explained(run)["cause"] == "leased"
        wait_for(lambda: is_renewed(run), "the lease is renewed")

        destination.client.release()
        all_over(run)
        assert (run.state, run.losses) == ("completed", 0)
        assert (sends(destination, operation), effects(destination, operation)) == (1, 1)
        assert ledger(operation) == [("first", "acknowledged")]
        assert attempts(run) == [
            (step, "committed") for step in ("prepare", "refund", "check", "notify")
        ]
        assert run.attempts.values("worker").distinct().count() == 1
