"""A small torture without any blow, in this process: what the checks of a torture start from.

Every workflow of it is walked to its rest, with lost answers, a refusal, a held operation, events
of every kind and a cancelled run; nothing of it is broken, and each test then breaks one thing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.test import override_settings

from reconciliation.models import Operation
from reconciliation.services.reconcile import reconcile
from romulus_site.torture import desk, rest, scene
from romulus_site.torture.answers import thing
from romulus_site.torture.errands import Cancellation
from romulus_site.torture.faults import COMPLETED, FAILED, NO_FAULT, Fault, held
from romulus_site.torture.flows import journal_of
from romulus_site.torture.plan import Plan, PlannedRun
from romulus_site.torture.player import ARMED_BY, Delivery, Performance
from romulus_site.torture.record import Record, read_record
from romulus_site.torture.sendings import OTHER_TYPE, TYPE, PlannedSending, correlation_of
from romulus_site.torture.strikes import strikes_of
from tests.destination import RunningDestination
from tests.waiting import wait_for
from workflows.registry import load, registry
from workflows.services.claims import claim_next
from workflows.services.clock import database_now
from workflows.services.executor import take
from workflows.services.ownership import Keeper
from workflows.services.sweep import duties

LOST = Fault("apply_then_drop;close=fin")
HELD = Fault("apply_then_drop;close=fin", held("unguarded"))
REFUSED = Fault("error_before;status=402", FAILED, lossy=False, effects=0)

WALK = {"rounds": 2, "nap": 0.0, "size": 2000, "stumbles": 1, "seconds": 0.0, "linger": 0.0}
LEAVES = {"leaves": 3, "nap": 0.0, "seconds": 0.0}
GROUP = {"stumbles": 0, "seconds": 0.0}

# Number, workflow, input, fault and end.
PLANNED: list[tuple[str, dict[str, Any], Fault, str]] = [
    ("torture.walk", WALK, NO_FAULT, COMPLETED),
    ("torture.walk", WALK | {"stumbles": 99}, NO_FAULT, FAILED),
    ("torture.family", LEAVES | {"broken": True}, NO_FAULT, COMPLETED),
    ("torture.strict", LEAVES | {"broken": True}, NO_FAULT, FAILED),
    ("torture.group", GROUP | {"broken": False}, NO_FAULT, COMPLETED),
    ("torture.group", GROUP | {"broken": True}, NO_FAULT, FAILED),
    ("torture.pay", {"rounds": 2, "seconds": 0.0}, LOST, COMPLETED),
    ("torture.pay", {"rounds": 1, "seconds": 0.0}, REFUSED, FAILED),
    ("torture.rent", {"rounds": 1, "seconds": 0.0}, LOST, COMPLETED),
    ("torture.tell", {"rounds": 1, "seconds": 0.0}, HELD, HELD.end),
    ("torture.tell", {"rounds": 1, "seconds": 0.0}, NO_FAULT, COMPLETED),
    ("torture.question", {"patience": 3600.0, "seconds": 0.0}, NO_FAULT, COMPLETED),
    ("torture.question", {"patience": 0.01, "seconds": 0.0}, NO_FAULT, COMPLETED),
    ("torture.walk", WALK | {"nap": 60.0}, NO_FAULT, COMPLETED),
]
TO_CANCEL = len(PLANNED)
ANSWERED, UNANSWERED = TO_CANCEL - 2, TO_CANCEL - 1

# Before the runs are started, and when all are at rest. The first is sent twice.
EARLY = PlannedSending(0.0, ANSWERED, "e-early", TYPE, correlation_of(ANSWERED))
NEAR = PlannedSending(0.0, UNANSWERED, "e-near", OTHER_TYPE, correlation_of(UNANSWERED))
LATE = PlannedSending(1.0, UNANSWERED, "e-late", TYPE, correlation_of(UNANSWERED))


def plan() -> Plan:
    runs = tuple(
        PlannedRun(
            number, 0.0, workflow, given | {"n": number, "thing": f"t{number}"}, fault, 1, end
        )
        for number, (workflow, given, fault, end) in enumerate(PLANNED, start=1)
    )
    return Plan(0, 1.0, 3.0, runs, (EARLY, EARLY, NEAR, LATE), (), ())


@contextmanager
def own_registry() -> Iterator[None]:
    """Let the tortured workflows be known for as long as they are needed."""
    before = dict(vars(registry))
    vars(registry)["_known"] = dict(before["_known"])
    load(["romulus_site.torture.flows"])
    try:
        yield
    finally:
        vars(registry).update(before)


def peaceful_record(destination: RunningDestination) -> Record:
    """Walk every run to its rest in this process, and read what is on record."""
    journal_of(settings.ROMULUS_DATA).unlink(missing_ok=True)
    with connection.cursor() as cursor:
        cursor.execute(scene.TABLE)
    scene.set_up_providers(destination.url)
    scene.set_up_source()
    planned = plan()
    deliveries = [delivered(sending) for sending in (EARLY, EARLY, NEAR)]
    performance = Performance(started=dict(started(planned, destination)), deliveries=deliveries)
    keeper = Keeper()
    with override_settings(ROMULUS_INLINE_OUTPUT_BYTES=4096):
        walk_until_rest(keeper, but=performance.started[TO_CANCEL])
        performance.cancellations.append(cancelled(performance.started[TO_CANCEL]))
    performance.deliveries.append(delivered(LATE))
    performance.strikes = strikes_of([], planned.lease)
    return read_record(planned, performance, destination.client, Path("/nowhere"))


def started(planned: Plan, destination: RunningDestination) -> Iterator[tuple[int, UUID]]:
    for run in planned.runs:
        if run.fault != NO_FAULT:
            personality, member = ARMED_BY[run.workflow]
            named = {member: thing(run.input, 1)}
            destination.client.arm(run.fault.text, personality=personality, body=named)
        yield run.number, UUID(desk.start(run.workflow, run.input, run.key)["run"])


def delivered(sending: PlannedSending) -> Delivery:
    told = desk.deliver(sending.event_id, sending.type, sending.correlation, sending.run)
    return Delivery(sending, told["outcome"], tries=1)


def walk_until_rest(keeper: Keeper, but: UUID) -> None:
    def at_rest() -> bool:
        for duty in duties:
            duty()
        for operation in Operation.objects.filter(due_at__lte=database_now()):
            reconcile(operation.pk)
        while (claim := claim_next(keeper.worker)) is not None:
            take(claim, keeper)
        return {each.run for each in rest.restless()} <= {but}

    wait_for(at_rest, "all runs are at rest")


def cancelled(run: UUID) -> Cancellation:
    told = desk.cancel(str(run))
    assert told["outcome"] == "cancelled"
    return Cancellation(run, "cancelled", database_now() + timedelta(0))
