"""The end of what is kept: outputs and inputs, once their `retain` has passed.

`retain` lives in code and counts from the end of the run: the step's own, else its workflow's,
which is also that of the run's input. A run whose version this process does not have is left to
those that have it. What goes is the value; its row stays and says when. The ledger is left alone,
and so are the messages of errors.

`purge_at` of a run only says when to look: what is due is worked out then, and whatever is to be
looked at again may set it to the present.

A row says that its output is purged before the object is deleted, so that no reference which
counts is ever without its object. Until all objects are gone the run stays due, an hour later: a
purge that dies or meets a storage that is away is gone on with by the next one.
"""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Count, Func, IntegerField, Q, QuerySet, TextField
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from workflows import storage
from workflows.core.errors import OutputsAway
from workflows.core.states import OutputForm
from workflows.core.values import Json
from workflows.failpoints import failpoint
from workflows.models import Attempt, Run
from workflows.registry import registry
from workflows.services.clock import database_now
from workflows.services.outputs import retention

log = structlog.get_logger(__name__)

BATCH = 100
# A purge that died, or met a storage that was away, is gone on with after this; and so is that of
# a child whose parent may still read it.
AGAIN = timedelta(hours=1)
INPUT_PURGED_AT = "romulus.purged_at"  # a name that no author gives to a field


@dataclass(frozen=True)
class Purged:
    """What a purge did, or would do."""

    runs: int = 0
    outputs: int = 0
    inputs: int = 0
    objects: int = 0
    bytes: int = 0
    failed: int = 0  # runs some of whose objects are left, until it is tried again

    def __add__(self, other: Purged) -> Purged:
        return Purged(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True)
class Output:
    """An output that is still kept."""

    attempt: UUID
    step: str
    form: str
    bytes: int
    object: str  # its name in the storage, or nothing


@dataclass(frozen=True)
class Plan:
    """What is to go of a run now, what stays, and when there will be more to do."""

    going: list[Output]
    staying: list[Output]
    input_goes: bool
    next_at: datetime | None


def purge_due(*, limit: int | None = None, dry_run: bool = False) -> Purged:
    """Purge what is due of at most `limit` runs. Any number of purges may run at once."""
    return sum(islice(purging(dry_run=dry_run), limit), Purged())


def purging(*, dry_run: bool = False) -> Iterator[Purged]:
    """Purge run after run, each by itself, those first that have been due longest."""
    now = database_now()
    for run in due_runs(now):
        yield rehearsed(run, now) if dry_run else purge_run(run, now)


# --- which runs -------------------------------------------------------------------------------


def due_runs(now: datetime) -> Iterator[UUID]:
    """Walk the runs of which something is due, page by page."""
    after = Q()
    while rows := list(
        due(now).filter(after).order_by("purge_at", "pk").values_list("pk", "purge_at")[:BATCH]
    ):
        yield from (pk for pk, _ in rows)
        pk, at = rows[-1]
        after = Q(purge_at__gt=at) | Q(purge_at=at, pk__gt=pk)


def due(now: datetime) -> QuerySet[Run]:
    return past_retention(now).filter(known())


def left_alone() -> list[dict[str, Any]]:
    """Count the runs that are due and whose version this process does not have."""
    runs = past_retention(database_now()).exclude(known()).order_by("workflow", "version")
    return [dict(row) for row in runs.values("workflow", "version").annotate(runs=Count("pk"))]


def past_retention(now: datetime) -> QuerySet[Run]:
    return Run.objects.filter(purge_at__lte=now, finished_at__isnull=False)


def known() -> Q:
    pairs = (Q(workflow=name, version=version) for name, version in registry.pairs())
    return functools.reduce(operator.or_, pairs, Q(pk__in=[]))


# --- one run ----------------------------------------------------------------------------------


def purge_run(pk: UUID, now: datetime) -> Purged:
    """Purge what is due of one run; nothing when another purge is at it or has done it."""
    failpoint("before_purge")
    # Durable, since objects are deleted for good: no transaction around may take the rows back.
    with transaction.atomic(durable=True):
        run = due(now).select_for_update(skip_locked=True).filter(pk=pk).first()
        if run is None:
            return Purged()
        plan = plan_for(run, now)
        empty(run, plan, now)
    failpoint("after_purge")
    try:
        leftovers = leftovers_of(run, plan)
        for name in [*names(plan.going), *leftovers]:
            storage.delete(name)
        storage.remove_folder(pk)
    except OutputsAway:
        log.exception("purge.failed", run=str(pk))
        return replace(tally(run, plan, {}), failed=1)
    failpoint("before_purged")
    Run.objects.filter(pk=pk, purge_at=now + AGAIN).update(purge_at=plan.next_at)
    failpoint("after_purged")
    return tally(run, plan, leftovers)


def rehearsed(pk: UUID, now: datetime) -> Purged:
    """Say what `purge_run` would do, and do nothing."""
    run = due(now).filter(pk=pk).first()
    if run is None:
        return Purged()
    plan = plan_for(run, now)
    return tally(run, plan, leftovers_of(run, plan))


def plan_for(run: Run, now: datetime) -> Plan:
    outputs = kept_outputs(run)
    ended_at = end_of(run)
    if ended_at is None:
        return Plan([], outputs, input_goes=False, next_at=now + AGAIN)
    workflow = registry.get(run.workflow, run.version)
    until = {output: kept_until(ended_at, retention(workflow, output.step)) for output in outputs}
    input_until = None if is_purged_input(run.input) else kept_until(ended_at, workflow.retain)
    later = [at for at in (input_until, *until.values()) if at and at > now]
    return Plan(
        going=[output for output, at in until.items() if at and at <= now],
        staying=[output for output, at in until.items() if not at or at > now],
        input_goes=input_until is not None and input_until <= now,
        next_at=min(later, default=None),
    )


def kept_until(ended_at: datetime, retain: timedelta | None) -> datetime | None:
    return None if retain is None else ended_at + retain


def end_of(run: Run) -> datetime | None:
    """From when on `retain` counts: a parent reads what its children leave until its own end."""
    parent = run.parent
    if parent is None:
        return run.finished_at
    if run.finished_at is None or parent.finished_at is None:
        return None
    return max(run.finished_at, parent.finished_at)


def kept_outputs(run: Run) -> list[Output]:
    """All that is still kept, also what was brought too late; without the values themselves."""
    rows = Attempt.objects.filter(run=run, output_form__isnull=False, purged_at__isnull=True)
    as_text = Func(
        Cast("output", TextField()), function="octet_length", output_field=IntegerField()
    )
    return [
        Output(pk, step, form, int(size), name)
        if form == OutputForm.OBJECT
        else Output(pk, step, form, length, "")
        for pk, step, form, length, name, size in rows.values_list(
            "pk", "step", "output_form", as_text, KT("output__object"), KT("output__size")
        )
    ]


def empty(run: Run, plan: Plan, now: datetime) -> None:
    """Take the values out of the rows; a reference stays, without the object that it names."""
    going = Attempt.objects.filter(pk__in=[output.attempt for output in plan.going])
    going.exclude(output_form=OutputForm.OBJECT).update(output=None, purged_at=now)
    going.filter(output_form=OutputForm.OBJECT).update(purged_at=now)
    changes: dict[str, Any] = {"purge_at": now + AGAIN}
    if plan.input_goes:
        changes["input"] = purged_input(now)
    Run.objects.filter(pk=run.pk).update(**changes)


def leftovers_of(run: Run, plan: Plan) -> dict[str, int]:
    """The objects, with their sizes, that no output refers to: of tries that were never committed,
    and of a purge that did not come to its end. The run is over: nothing new is to come."""
    known = {*names(plan.going), *names(plan.staying)}
    return {name: storage.size(name) for name in storage.objects_of(run.pk) - known}


def names(outputs: list[Output]) -> list[str]:
    return [output.object for output in outputs if output.object]


def tally(run: Run, plan: Plan, leftovers: dict[str, int]) -> Purged:
    input_bytes = len(json.dumps(run.input)) if plan.input_goes else 0
    return Purged(
        runs=int(bool(plan.going or plan.input_goes or leftovers)),
        outputs=len(plan.going),
        inputs=int(plan.input_goes),
        objects=len(names(plan.going)) + len(leftovers),
        bytes=sum(output.bytes for output in plan.going) + input_bytes + sum(leftovers.values()),
    )


# --- the input --------------------------------------------------------------------------------


def purged_input(at: datetime) -> Json:
    """What stands in the place of a run's input once that is purged."""
    return {INPUT_PURGED_AT: at.astimezone(UTC).isoformat(timespec="seconds")}


def is_purged_input(input: Json) -> bool:
    return isinstance(input, dict) and input.keys() == {INPUT_PURGED_AT}
