"""Stopping by somebody's wish: cancel, pause and resume a run; pause a workflow or a tenant.

A cancellation is written down first and then carried out (`ending`): at once where nothing is open
on another system, else when that is settled. A step that is under way is not interrupted: its late
result is refused and kept as evidence.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from workflows.core.errors import RunIsOver, UsageError
from workflows.core.states import RunState
from workflows.core.words import is_storable, read_length
from workflows.failpoints import failpoint
from workflows.models import Pause, Run, Tenant
from workflows.services import audit, hints
from workflows.services.children import look_at_parent
from workflows.services.ending import end
from workflows.services.pauses import forget

log = structlog.get_logger(__name__)

MAX_BY, MAX_REASON = 150, 500


class Cancelled(StrEnum):
    AT_ONCE = "cancelled"
    ASKED = "asked"  # something is open on another system and is settled first


# --- cancelling -------------------------------------------------------------------------------


def cancel_run(run_id: UUID, *, by: str, reason: str = "") -> Cancelled:
    """End a run and the runs that it waits for.

    Args:
        by: who asks, for the record.

    Raises:
        RunIsOver: it has ended already; says how.
        Run.DoesNotExist
    """
    check_words(by, reason)
    failpoint("before_cancel")
    with transaction.atomic():
        run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
        if RunState(run.state).is_final:
            raise RunIsOver(f"run {run.pk} is {run.state} already")
        is_first = run.cancel_asked_at is None
        if is_first:
            Run.objects.unchanged(run).update(cancel_asked_at=Now(), cancel_asked_by=by)
            run.refresh_from_db(fields=["cancel_asked_at", "cancel_asked_by"])
        ended = bool(end([run]))
        if is_first:
            audit.record(by, "run cancelled", f"run:{run.pk}", reason=reason)
    failpoint("after_cancel")
    if ended:
        look_at_parent(run.parent_id)
    return Cancelled.AT_ONCE if ended else Cancelled.ASKED


# --- pausing ----------------------------------------------------------------------------------


def pause_run(run_id: UUID, *, by: str, reason: str = "") -> bool:
    """Let a run stop at its next step; what it waits for goes on. False when it is paused already.

    Raises:
        RunIsOver: it has ended already; says how.
        Run.DoesNotExist
    """
    check_words(by, reason)
    running_on = Q(paused_at=None)
    return change(run_id, by, "run paused", reason, running_on, paused_at=Now(), paused_by=by)


def resume_run(
    run_id: UUID, *, by: str, reason: str = "", paused_at: datetime | None = None
) -> bool:
    """Let a paused run go on. False when it is not paused, or not by the pause that is meant.

    Args:
        paused_at: when the pause began that is to end; None: whichever there is.

    Raises:
        RunIsOver: it has ended already; says how.
        Run.DoesNotExist
    """
    check_words(by, reason)
    paused = Q(paused_at=paused_at) if paused_at else Q(paused_at__isnull=False)
    changed = change(run_id, by, "run resumed", reason, paused, paused_at=None, paused_by="")
    if changed:
        hints.run_is_ready(run_id)
    return changed


def change(run_id: UUID, by: str, verb: str, reason: str, condition: Q, **changes: object) -> bool:
    failpoint("before_pause")
    with transaction.atomic():
        changed = Run.objects.filter(condition, pk=run_id, finished_at=None).update(**changes)
        if changed:
            audit.record(by, verb, f"run:{run_id}", reason=reason)
    failpoint("after_pause")
    if changed:
        return True
    run = Run.objects.get(pk=run_id)
    if RunState(run.state).is_final:
        raise RunIsOver(f"run {run_id} is {run.state} already")
    return False


def pause_all(*, by: str, reason: str, workflow: str = "", tenant: Tenant | None = None) -> Pause:
    """Pause every run of a workflow, of a tenant, or of a workflow for one tenant.

    Nothing of it is claimed any more, and workers stop at their next step. Starting goes on, and
    so do waits, look-ups and decisions. Pausing twice changes nothing: the first reason stays.

    Raises:
        UsageError: neither a workflow nor a tenant is named, or no reason is given.
    """
    check_words(by, reason)
    if not (workflow or tenant):
        raise UsageError("pause: name a workflow, a tenant, or both")
    if not read_length(reason):
        raise UsageError("pause: say why, for those who will wonder")
    failpoint("before_pause_all")
    with transaction.atomic():
        pause, made = Pause.objects.get_or_create(
            workflow=workflow, tenant=tenant, defaults={"by": by, "reason": reason}
        )
        if made:
            audit.record(by, "paused", scope_of(workflow, tenant), reason=reason)
    failpoint("after_pause_all")
    forget()
    return pause


def resume_all(
    *, by: str, reason: str = "", workflow: str = "", tenant: Tenant | None = None
) -> bool:
    """Take back exactly one pause. False when there is none of this workflow and tenant."""
    check_words(by, reason)
    failpoint("before_resume_all")
    with transaction.atomic():
        gone, _ = Pause.objects.filter(workflow=workflow, tenant=tenant).delete()
        if gone:
            audit.record(by, "resumed", scope_of(workflow, tenant), reason=reason)
    failpoint("after_resume_all")
    forget()
    return bool(gone)


def scope_of(workflow: str, tenant: Tenant | None) -> str:
    named = [f"workflow:{workflow}"] if workflow else []
    return " ".join([*named, f"tenant:{tenant.pk}"] if tenant else named)


def check_words(by: str, reason: str) -> None:
    if not by or not is_storable(by, MAX_BY):
        raise UsageError(f"by: who does it, plain text of 1 to {MAX_BY} characters")
    if not is_storable(reason, MAX_REASON):
        raise UsageError(f"reason: plain text of {MAX_REASON} characters at most")
