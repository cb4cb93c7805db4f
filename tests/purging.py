"""Finished runs whose outputs, in every form, are to be purged at times of their own."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.core.files.base import ContentFile

from tests.factories import tenant
from workflows import storage
from workflows.core.definitions import Workflow
from workflows.core.errors import OutputPurged
from workflows.models import Attempt, Run
from workflows.models.ids import new_id
from workflows.registry import registry
from workflows.services.clock import database_now
from workflows.services.outputs import keep_output, purge_delay, read_output
from workflows.services.run_view import RunView

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
SMALL = {"name": "Ada"}
LARGE = {"name": "Ada", "lines": ["line"] * 100}

# Kept for 10 days; `brief` for one; `long` for 20.
FLOW = Workflow("tests.purged", retain=10 * DAY)
FOR_EVER = Workflow("tests.kept_for_ever")


@FLOW.step()
def plain(run: RunView) -> Any: ...


@FLOW.step(sensitive=True)
def sealed(run: RunView) -> Any: ...


@FLOW.step(retain=DAY)
def brief(run: RunView) -> Any: ...


@FLOW.step(retain=20 * DAY)
def long(run: RunView) -> Any: ...


@FOR_EVER.step()
def kept(run: RunView) -> Any: ...


def finished_run(ago: timedelta = timedelta(0), workflow: Workflow = FLOW, **fields: Any) -> Run:
    """A run that ended so long ago, due as the engine leaves it."""
    registry.add(workflow)
    delay = purge_delay(workflow)
    ended_at = database_now() - ago
    return Run.objects.create(
        **{
            "workflow": workflow.name,
            "version": workflow.version,
            "tenant": tenant(),
            "state": "completed",
            "step": workflow.first.name,
            "input": SMALL,
            "finished_at": ended_at,
            "purge_at": None if delay is None else ended_at + delay,
        }
        | fields
    )


def leave(run: Run, step: str, value: Any, state: str = "committed") -> Attempt:
    """Let an attempt at `step` of `run` have left this output."""
    attempt, workflow = new_id(), registry.get(run.workflow, run.version)
    output = keep_output(workflow.steps[step], value, run=run.pk, attempt=attempt)
    now = database_now()
    return Attempt.objects.create(
        pk=attempt,
        run=run,
        step=step,
        visit=1,
        number=1,
        worker=new_id(),
        fence=run.attempts.count() + 1,
        claimed_at=now,
        ended_at=now,
        state=state,
        output=output.value,
        output_form=output.form,
    )


def write(run: UUID, age: timedelta = timedelta(0)) -> str:
    """Leave an object of `run` that nothing refers to, written so long ago."""
    name = storage.outputs().save(storage.new_name(run, new_id()), ContentFile(b"0123456789"))
    age_object(name, age)
    return name


def age_object(name: str, age: timedelta) -> None:
    written = (database_now() - age).timestamp()
    os.utime(storage.outputs().path(name), (written, written))


def age_purge(run: Run, by: timedelta) -> None:
    run.refresh_from_db()
    assert run.purge_at is not None
    Run.objects.filter(pk=run.pk).update(purge_at=run.purge_at - by)


def is_kept(attempt: Attempt) -> bool:
    """Whether the output can be read; if not, it says that it was purged."""
    try:
        read_output(Attempt.objects.get(pk=attempt.pk))
    except OutputPurged:
        return False
    return True


def due_at(run: Run) -> datetime | None:
    return Run.objects.get(pk=run.pk).purge_at
