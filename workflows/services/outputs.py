"""Keeping outputs, and giving them back: in the row, sealed in the row, or as an object.

An output whose JSON text is longer than `ROMULUS_INLINE_OUTPUT_BYTES` is written to the Django
storage `outputs`, read back and compared before its reference may be committed. That of a step
marked `sensitive` is sealed before it leaves the process, for the row and for the storage alike
(workflows/sealing.py: an old key must stay for as long as what it sealed is kept).
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from cryptography.fernet import InvalidToken
from django.conf import settings
from django.core.files.base import ContentFile

from workflows import storage
from workflows.core.definitions import Step, Workflow
from workflows.core.errors import (
    OutputDamaged,
    OutputNotKept,
    OutputPurged,
    OutputsAway,
    UsageError,
)
from workflows.core.states import OutputForm
from workflows.core.values import Json
from workflows.core.words import describe
from workflows.failpoints import failpoint
from workflows.models import Attempt
from workflows.sealing import seal, unseal

PURPOSE = b"output"  # what outputs are sealed for


@dataclass(frozen=True, slots=True)
class Reference:
    """What a row keeps of an output that lies in the storage."""

    object: str  # its name there
    sha256: str  # of its bytes, as they lie there
    size: int
    sealed: bool


@dataclass(slots=True)  # not frozen, as `Claim` is not: each step makes one
class Kept:
    """An output as it goes into its attempt's row."""

    form: OutputForm
    value: Json
    text: str  # `value` as JSON text, for the column


# --- keeping ----------------------------------------------------------------------------------


def keep_output(step: Step, plain: Json, *, run: UUID, attempt: UUID) -> Kept:
    """Return `plain`, the storable output of `step`, as it goes into the attempt's row.

    A large one is in the storage after this. It is nobody's until its reference is committed; if
    that never happens, the orphan collection removes it (services/orphans.py).

    Raises:
        OutputNotKept: the storage failed, or gave back something else.
    """
    text = json.dumps(plain)  # ASCII: as many bytes as characters
    if len(text) > settings.ROMULUS_INLINE_OUTPUT_BYTES:
        return keep_object(step, text.encode(), run, attempt)
    if step.sensitive:
        token = seal(text.encode(), PURPOSE).decode()
        return Kept(OutputForm.SEALED, token, f'"{token}"')
    return Kept(OutputForm.PLAIN, plain, text)


def keep_object(step: Step, data: bytes, run: UUID, attempt: UUID) -> Kept:
    if step.sensitive:
        data = seal(data, PURPOSE)
    name = storage.new_name(run, attempt)
    failpoint("before_object", step.name)
    try:
        # The storage may choose another name, and it is that one which is its.
        name = storage.outputs().save(name, ContentFile(data))
        reference = Reference(name, sha256(data), len(data), sealed=step.sensitive)
        problem = difference(reference, read_back(reference))
    except Exception as error:
        discard(name)
        raise not_kept(step, describe(error)) from error
    if problem:
        discard(name)
        raise not_kept(step, problem)
    failpoint("after_object", step.name)
    value = asdict(reference)
    return Kept(OutputForm.OBJECT, value, json.dumps(value))


def read_back(reference: Reference) -> bytes:
    # One byte more than there should be: a longer object is noticed and not read.
    return storage.read(reference.object, reference.size + 1)


def difference(reference: Reference, data: bytes) -> str:
    """Say how `data` differs from what was referred to; empty when it does not."""
    if len(data) != reference.size:
        return f"it has another size than the {reference.size:,} bytes that were written"
    if sha256(data) != reference.sha256:
        return "its bytes are not those that were written"
    return ""


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def not_kept(step: Step, problem: str) -> OutputNotKept:
    return OutputNotKept(
        f"output of step {step.name}: the storage of outputs ({storage.kind()}) did not keep it: "
        f"{problem}. See to the storage (STORAGES['outputs'] in the settings), then let the run "
        "go on."
    )


def discard(name: str) -> None:
    """Remove what was not kept, if the storage lets us: half an output on a full disk would keep
    it full until the orphan collection comes. The name was never given to anything else."""
    with suppress(Exception):
        storage.outputs().delete(name)


# --- reading ----------------------------------------------------------------------------------


def read_output(attempt: Attempt) -> Json:
    """Return the output of `attempt` as plain JSON, in whatever form it is kept.

    Raises:
        UsageError: it left no output.
        OutputPurged: it is kept no longer; says since when.
        OutputDamaged: it is missing, was changed, or no key opens it; names it.
        OutputsAway: the storage does not answer; later it may.
    """
    if attempt.output_form is None:
        raise UsageError(f"{what(attempt)}: there is none")
    if attempt.purged_at is not None:
        raise purged(attempt, attempt.purged_at)
    match OutputForm(attempt.output_form):
        case OutputForm.PLAIN:
            return attempt.output
        case OutputForm.SEALED:
            return json.loads(opened(attempt, str(attempt.output).encode()))
        case OutputForm.OBJECT:
            reference = Reference(**(attempt.output or {}))
            data = object_of(attempt, reference)
            return json.loads(opened(attempt, data) if reference.sealed else data)


def is_sealed(attempt: Attempt) -> bool:
    """Whether the output of `attempt` is kept encrypted, as that of a sensitive step."""
    in_object = attempt.output_form == OutputForm.OBJECT and (attempt.output or {}).get("sealed")
    return attempt.output_form == OutputForm.SEALED or bool(in_object)


def what(attempt: Attempt) -> str:
    return f"output of step {attempt.step} (attempt {attempt.pk})"


def purged(attempt: Attempt, at: datetime) -> OutputPurged:
    return OutputPurged(
        f"{what(attempt)} was purged on {at.astimezone(UTC):%Y-%m-%d at %H:%M} UTC: "
        "its workflow keeps it no longer"
    )


def opened(attempt: Attempt, token: bytes) -> bytes:
    try:
        return unseal(token, PURPOSE)
    except InvalidToken:
        raise OutputDamaged(
            f"{what(attempt)}: none of the keys in ROMULUS_KEYS opens it. If a key was replaced, "
            "put the old one back behind the new one; else it was changed"
        ) from None


def object_of(attempt: Attempt, reference: Reference) -> bytes:
    try:
        data = read_back(reference)
    except FileNotFoundError:
        raise missing(attempt, reference) from None
    except OutputsAway as error:
        raise OutputsAway(f"{what(attempt)}: {error}") from error
    problem = difference(reference, data)
    if problem:
        raise OutputDamaged(f"{what(attempt)}: object {reference.object}: {problem}")
    return data


def missing(attempt: Attempt, reference: Reference) -> OutputPurged | OutputDamaged:
    """It may have been purged since its row was read."""
    at = Attempt.objects.filter(pk=attempt.pk).values_list("purged_at", flat=True).first()
    if at is not None:
        return purged(attempt, at)
    return OutputDamaged(
        f"{what(attempt)}: object {reference.object} is missing in the storage of outputs"
    )


# --- how long ---------------------------------------------------------------------------------


def retention(workflow: Workflow, step: str) -> timedelta | None:
    """How long the outputs of `step` are kept after the run's end; None: for ever.

    A step that the workflow no longer has is kept as long as the workflow says.
    """
    known = workflow.steps.get(step)
    return known.retain if known and known.retain is not None else workflow.retain


def purge_delay(workflow: Workflow) -> timedelta | None:
    """How long after the end of a run something of it is to be purged first; None: never."""
    delays = [workflow.retain, *(step.retain for step in workflow.steps.values())]
    return min((delay for delay in delays if delay is not None), default=None)
