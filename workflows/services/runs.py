"""Starting runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog
from django.conf import settings
from django.db import IntegrityError, transaction

from workflows.core.definitions import Workflow
from workflows.core.errors import InvalidInput, StartConflict, UnstorableValue
from workflows.core.values import Json, to_json
from workflows.core.words import is_storable
from workflows.models import Run, Tenant
from workflows.models.run import START_KEY_CONSTRAINT
from workflows.registry import registry
from workflows.services import hints

log = structlog.get_logger(__name__)

MAX_WORD = 200  # characters of a start key, a label's name or its value
MAX_LABELS = 20


def start(
    workflow: str,
    input: Any,
    *,
    tenant: Tenant,
    version: int | None = None,
    start_key: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> Run:
    """Start a run, or return the run that this start key has started with the same input.

    Inside the caller's own transaction the run commits or rolls back with it.

    Args:
        workflow: its name; the latest version that this process has, unless `version` says.
        input: what the workflow's input type takes; checked before anything is stored.
        start_key: makes starting idempotent, within tenant and workflow.

    Raises:
        UnknownWorkflow: names what is known.
        InvalidInput: names the path of the field that does not fit.
        StartConflict: the start key was used with another input.
    """
    definition = registry.latest(workflow) if version is None else registry.get(workflow, version)
    checked = check_input(definition, input)
    check_start_key(start_key)
    check_labels(labels or {})
    run = Run(
        workflow=definition.name,
        version=definition.version,
        tenant=tenant,
        step=definition.first.name,
        input=checked,
        labels=dict(labels or {}),
        start_key=start_key,
    )
    try:
        with transaction.atomic():
            run.save(force_insert=True)
    except IntegrityError as error:
        if START_KEY_CONSTRAINT not in str(error):
            raise
        return started_before(run)
    hints.run_is_ready(run.pk)
    log.info("run.started", run=str(run.pk), workflow=run.workflow, version=run.version)
    return run


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


def started_before(run: Run) -> Run:
    """Return the run that took this start key first.

    Raises:
        StartConflict: it was started with another input.
    """
    first = Run.objects.get(tenant=run.tenant, workflow=run.workflow, start_key=run.start_key)
    # Compared by the database, as it keeps it: it writes some numbers in another form.
    if not Run.objects.filter(pk=first.pk, input=run.input).exists():
        raise StartConflict(
            f"start key {run.start_key!r} started run {first.pk} of {run.workflow} "
            "with another input; use another key for another run"
        )
    return first
