"""Starting runs: one, or thousands in one call."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection, transaction

from workflows.core.definitions import Workflow
from workflows.core.errors import InvalidInput, StartConflict, UnstorableValue
from workflows.core.values import Json, to_json
from workflows.core.words import is_storable
from workflows.failpoints import failpoint
from workflows.models import Run, Tenant
from workflows.registry import registry
from workflows.services import hints
from workflows.services.audit import actor_of, record
from workflows.services.purge import is_purged_input
from workflows.sql import fetch

if TYPE_CHECKING:
    from django.contrib.auth.models import User

log = structlog.get_logger(__name__)

Item = TypeVar("Item")

MAX_WORD = 200  # characters of a start key, a label's name or its value
MAX_LABELS = 20
BATCH = 1000  # rows of one INSERT
STARTED = "started"  # in the audit record: by whom, where a person did


@dataclass(frozen=True)
class Start:
    """One of many runs to start; see `start` for what each means."""

    input: Any = field(default_factory=dict)
    start_key: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


def start(
    workflow: str,
    input: Any,
    *,
    tenant: Tenant,
    version: int | None = None,
    start_key: str | None = None,
    labels: Mapping[str, str] | None = None,
    by: User | None = None,
) -> Run:
    """Start a run, or return the run that this start key has started with the same input.

    Inside the caller's own transaction the run commits or rolls back with it.

    Args:
        workflow: its name; the latest version that this process has, unless `version` says.
        input: what the workflow's input type takes; checked before anything is stored.
        start_key: makes starting idempotent, within tenant and workflow.
        by: the person who starts it, who then decides nothing of it; goes into the audit record.

    Raises:
        UnknownWorkflow: names what is known.
        InvalidInput: names the path of the field that does not fit.
        StartConflict: the start key was used with another input.
    """
    run = prepared(
        workflow, input, tenant=tenant.pk, version=version, start_key=start_key, labels=labels
    )
    failpoint("before_start")
    # Without a person to record, storing is one statement and needs no transaction.
    with transaction.atomic() if by is not None else nullcontext():
        stored = store([run])
        if stored and by is not None:
            record(actor_of(by), STARTED, f"run:{run.pk}")
    if not stored:
        return as_before(run, *first_of([run])[0])
    failpoint("after_start")
    hints.run_is_ready(run.pk)
    log.info("run.started", run=str(run.pk), workflow=run.workflow, version=run.version)
    return run


def start_many(
    workflow: str, starts: Iterable[Start], *, tenant: Tenant, version: int | None = None
) -> list[Run]:
    """Start many runs of one workflow in one transaction: all of them, or none.

    Every input is checked before anything is stored. A start key that has started a run with the
    same input gives that run, as with `start`; so does one that is named twice here.

    Returns:
        One run for each of `starts`, in their order.

    Raises:
        UnknownWorkflow, InvalidInput: names the place in `starts`, from 0.
        StartConflict: a start key was used with another input, here or earlier; names the place
            too.
    """
    runs = [
        at_place(place, workflow, each, tenant.pk, version) for place, each in enumerate(starts)
    ]
    failpoint("before_start_many")
    keyless = [run for run in runs if run.start_key is None]
    # In one order for everybody, so that two calls with the same keys never wait for each other.
    keyed = sorted((run for run in runs if run.start_key is not None), key=start_key_of)
    with transaction.atomic():
        mine = store(keyless) | store(keyed)
        answer = list(runs)
        before = [place for place, run in enumerate(runs) if run.pk not in mine]
        for place, first in zip(before, first_of([runs[place] for place in before]), strict=True):
            answer[place] = at_place_before(place, runs[place], *first)
        hints.runs_are_ready([run.pk for run in runs if run.pk in mine])
    failpoint("after_start_many")
    log.info("runs.started", workflow=workflow, started=len(mine), asked=len(runs))
    return answer


def at_place(place: int, workflow: str, each: Start, tenant: UUID, version: int | None) -> Run:
    try:
        return prepared(
            workflow,
            each.input,
            tenant=tenant,
            version=version,
            start_key=each.start_key,
            labels=each.labels,
        )
    except InvalidInput as error:
        raise InvalidInput(f"run {place} of those to start: {error}") from error


def at_place_before(place: int, run: Run, first: Run, same: bool) -> Run:
    try:
        return as_before(run, first, same)
    except StartConflict as error:
        raise StartConflict(f"run {place} of those to start: {error}") from error


def start_key_of(run: Run) -> str:
    return run.start_key or ""


def store(runs: Sequence[Run]) -> set[UUID]:
    """Store checked runs of one tenant, or of one parent, in the caller's transaction.

    Returns:
        Which of them were stored: those whose start key nobody had used before. They get the times
        that the database has given them.
    """
    found: set[UUID] = set()
    for batch in batches(runs, BATCH):
        by_id = {run.pk: run for run in batch}
        for row in fetch("start_runs", rows_of(batch)):
            run = by_id[row["id"]]
            run.created_at, run.ready_at = row["created_at"], row["ready_at"]
            run._state.adding, run._state.db = False, connection.alias
            found.add(run.pk)
    return found


def rows_of(runs: Sequence[Run]) -> dict[str, Any]:
    """The columns of runs that share tenant and parent."""
    first = runs[0]
    return {
        "tenant": first.tenant_id,
        "parent": first.parent_id,
        "parent_step": first.parent_step,
        "parent_visit": first.parent_visit,
        "runs": [run.pk for run in runs],
        "names": [run.workflow for run in runs],
        "versions": [run.version for run in runs],
        "steps": [run.step for run in runs],
        "inputs": [json.dumps(run.input) for run in runs],
        "labels": [json.dumps(run.labels) for run in runs],
        "start_keys": [run.start_key for run in runs],
        "states": [str(run.state) for run in runs],
        "failures": [None if run.failure is None else json.dumps(run.failure) for run in runs],
        "places": [run.parent_index for run in runs],
    }


def batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    source = iter(items)
    while batch := list(islice(source, size)):
        yield batch


def prepared(
    workflow: str,
    input: Any,
    *,
    tenant: UUID,
    version: int | None = None,
    start_key: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> Run:
    """Return a run that is checked and not stored yet; raises as `start` does."""
    definition = registry.latest(workflow) if version is None else registry.get(workflow, version)
    checked = check_input(definition, input)
    check_start_key(start_key)
    check_labels(labels or {})
    return Run(
        workflow=definition.name,
        version=definition.version,
        tenant_id=tenant,
        step=definition.first.name,
        input=checked,
        labels=dict(labels or {}),
        start_key=start_key,
    )


def check_input(workflow: Workflow, input: Any) -> Json:
    try:
        return to_json(
            input,
            workflow.input,
            limit=settings.ROMULUS_MAX_INPUT_BYTES,
            what=f"input of {workflow.name}",
        )
    except UnstorableValue as error:
        raise InvalidInput(str(error)) from error


def check_start_key(start_key: str | None) -> None:
    if start_key is not None and not is_storable(start_key, MAX_WORD):
        raise InvalidInput(f"start key: plain text of {MAX_WORD} characters at most")


def check_labels(labels: Mapping[str, str]) -> None:
    fit = len(labels) <= MAX_LABELS and all(
        isinstance(word, str) and is_storable(word, MAX_WORD)
        for label in labels.items()
        for word in label
    )
    if not fit:
        raise InvalidInput(
            f"labels: {MAX_LABELS} names and values at most, plain text of {MAX_WORD} characters"
        )


def first_of(runs: Sequence[Run]) -> list[tuple[Run, bool]]:
    """The runs of one workflow and tenant that took the start keys of `runs` first, in their order,
    each with whether its input is the same. Two queries for a thousand."""
    found: list[tuple[Run, bool]] = []
    for batch in batches(runs, BATCH):
        rows = fetch(
            "started_before",
            {
                "tenant": batch[0].tenant_id,
                "workflow": batch[0].workflow,
                "start_keys": [run.start_key for run in batch],
                "inputs": [json.dumps(run.input) for run in batch],
            },
        )
        firsts = Run.objects.in_bulk([row["id"] for row in rows])
        found += [(firsts[row["id"]], row["same"]) for row in rows]
    return found


def as_before(run: Run, first: Run, same: bool) -> Run:
    """Return `first`, which took the start key of `run` before it.

    Raises:
        StartConflict: it was started with another input.
    """
    # What it was started with may be kept no longer.
    if not same and not is_purged_input(first.input):
        raise StartConflict(
            f"start key {run.start_key!r} started run {first.pk} of {run.workflow} "
            "with another input; use another key for another run"
        )
    return first
