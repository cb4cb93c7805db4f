"""Moving unfinished runs to a later version of their workflow: planned, and carried out.

A plan is made without a lock: it reads outputs, calls the author's functions, and writes nothing.
It is carried out in one transaction, in which the run is locked and has to stand where it stood;
else it is planned anew. So neither the author's code nor a storage holds up a row, and a worker
that claims the run meanwhile keeps it.

What is not rewritten: attempts and outputs stay as they were. An output that belongs to another
step now, or was changed, is a new attempt under a new fence, of no worker, that says from which
version it comes; of each step the latest output is carried over, earlier visits are not. One that
is not carried over can be asked for no more, unless the version has a step of its very name.

A run whose worker went quiet and whose lease has run out moves too: else the last worker of a
version could take its runs with it. Whatever it still brings is refused, as after a take-over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from workflows.core import staying
from workflows.core.definitions import Step, Workflow
from workflows.core.errors import OutputNotKept, RunIsOver, UsageError
from workflows.core.outcomes import Outcome
from workflows.core.standing import STEP_MISSING, Moves, NewOutput, Standing, Stays
from workflows.core.states import AttemptState, RunState
from workflows.failpoints import failpoint
from workflows.models import Attempt, Run
from workflows.models.ids import new_id
from workflows.registry import registry
from workflows.services import audit, hints
from workflows.services.clock import database_now
from workflows.services.migration_plans import Plan, batches, earlier, planned
from workflows.services.outputs import is_sealed, keep_output
from workflows.services.settling import close_holds
from workflows.services.standings import standings_of, with_parents
from workflows.services.waits import follow

log = structlog.get_logger(__name__)

PLANS = 3  # a run that has moved between plan and lock each time is busy

NOBODY = UUID(int=0)  # the worker of what no worker has done


# --- for the edges ----------------------------------------------------------------------------


def migrate_run(run_id: UUID, to_version: int, *, by: str) -> Outcome:
    """Move one run to `to_version` of its workflow, or say why it stays.

    Args:
        by: who moves it, for the record.

    Raises:
        UnknownWorkflow: this process does not have that version.
        UsageError: the run is of this version or a later one.
        RunIsOver: it has ended already; says how.
        Run.DoesNotExist
    """
    run = with_parents(Run.objects.all()).get(pk=run_id)
    into = registry.get(run.workflow, to_version)
    check_earlier(run, into)
    (plan,) = planned([run], into)
    outcome = carried_out(plan, into, by)
    if outcome is None:
        check_earlier(Run.objects.get(pk=run_id), into)
        raise AssertionError("a run that is gone is over, or of a later version")
    return outcome


def check_earlier(run: Run, into: Workflow) -> None:
    """Raises `RunIsOver`, `UsageError`."""
    if run.finished_at is not None:
        raise RunIsOver(f"run {run.pk} is {run.state} already")
    if run.version >= into.version:
        raise UsageError(
            f"run {run.pk} is of version {run.version} of {run.workflow} already: runs move to "
            "later versions only"
        )


def migrating(
    runs: QuerySet[Run], into: Workflow, *, by: str, dry_run: bool = False
) -> Iterator[Outcome]:
    """Move those of `runs` that are unfinished and of earlier versions, each by itself.

    The earliest version comes first, and of one version the oldest run. With `dry_run` nothing is
    changed; outputs are read and the author's functions called all the same, so that what they
    cannot do is seen. A run that ends meanwhile, or that somebody else moves, is left out.
    """
    for batch in batches(earlier(runs, into)):
        for plan in planned(batch, into):
            outcome = plan.outcome if dry_run else carried_out(plan, into, by)
            if outcome is not None:
                yield outcome


# --- carrying out -----------------------------------------------------------------------------


def carried_out(plan: Plan, into: Workflow, by: str) -> Outcome | None:
    """Carry a plan out; one that the run has left behind is made anew.

    None when the run has ended meanwhile, or somebody else has moved it.
    """
    for _ in range(PLANS):
        if isinstance(plan.answer, Stays):
            return plan.outcome
        try:
            if move(plan, plan.answer, into, by):
                return plan.outcome
        except OutputNotKept as error:
            return replace(plan, answer=staying.output_not_kept(error)).outcome
        run = with_parents(earlier(Run.objects.all(), into)).filter(pk=plan.run.pk).first()
        if run is None:
            return None
        (plan,) = planned([run], into)
    return replace(plan, answer=staying.moved_on()).outcome


def move(plan: Plan, moves: Moves, into: Workflow, by: str) -> bool:
    """Move the run as planned, in one transaction; False when it does not stand there any more.

    Raises:
        OutputNotKept: the storage did not keep an output; nothing was changed.
    """
    assert plan.converted is not None
    rows = [
        row_of(plan, into.steps[output.step], output, fence)
        for fence, output in enumerate(plan.converted.outputs, start=plan.standing.fence + 1)
    ]
    failpoint("before_migration")
    with transaction.atomic():
        run = locked(plan.run.pk)
        if run is None or standing_of(run, into) != plan.standing:
            return False
        if run.state == RunState.RUNNING:
            lost_attempt(run).save(force_insert=True)
        Attempt.objects.bulk_create(rows)
        changes: dict[str, Any] = {"fence": run.fence + len(rows)}
        migration = into.migration_from(run.version)
        if migration is not None and migration.input is not None:
            changes["input"] = plan.converted.input
        rewrite(run, moves, into, **changes)
        if plan.standing.reason == STEP_MISSING:
            close_holds(run.pk, by, f"the run moved to version {into.version}")
        record(run, moves, into, by)
        if moves.state is RunState.READY:
            hints.run_is_ready(run.pk)
    failpoint("after_migration")
    log.info("run.migrated", run=str(run.pk), version=into.version, step=moves.step)
    return True


def locked(run: UUID) -> Run | None:
    unfinished = Run.objects.select_for_update(of=("self",), no_key=True).filter(
        finished_at__isnull=True
    )
    return with_parents(unfinished).filter(pk=run).first()


def standing_of(run: Run, into: Workflow) -> Standing:
    return standings_of([run], {into.name: into}, database_now())[run.pk]


def row_of(plan: Plan, step: Step, output: NewOutput, fence: int) -> Attempt:
    """The new output as an attempt that nobody has made."""
    source, attempt = plan.sources[output.source], new_id()
    # What was sealed stays so, whatever the later version says of its step.
    step = replace(step, sensitive=step.sensitive or is_sealed(source))
    kept = keep_output(step, output.value, run=plan.run.pk, attempt=attempt)
    return Attempt(
        id=attempt,
        run=plan.run,
        step=output.step,
        visit=output.visit,
        number=source.number,
        worker=NOBODY,
        fence=fence,
        claimed_at=Now(),
        ended_at=Now(),
        state=AttemptState.COMMITTED,
        error=f"migrated from version {plan.run.version}, step {output.source}",
        output=kept.value,
        output_form=kept.form,
    )


def lost_attempt(run: Run) -> Attempt:
    """The attempt of a worker that went quiet, as a take-over writes it down."""
    assert run.lease_owner is not None, "it is running"
    assert run.claimed_at is not None, "it is running"
    return Attempt(
        id=run.attempt,
        run=run,
        step=run.step,
        visit=run.visit,
        number=run.tries,
        worker=run.lease_owner,
        fence=run.fence,
        claimed_at=run.claimed_at,
        ended_at=Now(),
        state=AttemptState.LOST,
        error="its worker went quiet, and its lease ended",
    )


def rewrite(run: Run, moves: Moves, into: Workflow, **changes: Any) -> None:
    """Write the run anew; it is locked, and its tries begin to count where it stands now."""
    changes |= {
        "version": into.version,
        "step": moves.step,
        "visit": moves.visit,
        "tries": 0,
        "failures": 0,
        "losses": 0,
    }
    if moves.state == run.state:
        moved = Run.objects.unchanged(run).update(**changes) == 1
    else:
        moved = Run.objects.move(run, moves.state, failure=None, **changes)
    assert moved, "the run is locked"
    follow(run, moves.step, moves.visit, waits=into.steps[moves.step].kind == "wait")
    if run.state == RunState.RUNNING:
        # What it has waited for counts on, as after a take-over; becoming ready forgets it.
        Run.objects.filter(pk=run.pk).update(wake_at=run.wake_at)


def record(run: Run, moves: Moves, into: Workflow, by: str) -> None:
    audit.record(
        by,
        "run migrated",
        f"run:{run.pk}",
        from_version=run.version,
        from_step=run.step,
        to_version=into.version,
        to_step=moves.step,
    )
