"""Who held runs, and when: leases, fences, and the order of attempts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, pairwise

from romulus_site.torture.record import Record
from workflows.core.states import AttemptState, RunState

GONE = (AttemptState.LOST, AttemptState.SUPERSEDED)


def none_left(record: Record) -> Iterator[str]:
    for run in record.runs:
        if run.state == RunState.RUNNING or run.lease_owner is not None:
            yield f"{record.name(run)} is {run.state}, held by worker {run.lease_owner}"


def fences(record: Record) -> Iterator[str]:
    """Each claim takes the next fence, and ends with a row: there is one for each."""
    for run in record.runs:
        given = [attempt.fence for attempt in record.attempts_of.get(run.pk, [])]
        if given != list(range(1, run.fence + 1)):
            yield f"{record.name(run)} has fence {run.fence} and attempts under {given}"


def no_overlap(record: Record) -> Iterator[str]:
    for run, attempts in record.attempts_of.items():
        for attempt in attempts:
            if attempt.claimed_at > attempt.ended_at:
                yield (
                    f"{record.name(run)}: attempt {attempt.fence} ended {attempt.ended_at}, "
                    f"before it was claimed {attempt.claimed_at}"
                )
        for one, next_one in pairwise(attempts):
            if one.ended_at > next_one.claimed_at:
                yield (
                    f"{record.name(run)}: attempt {next_one.fence} was claimed "
                    f"{next_one.claimed_at}, before {one.fence} ended {one.ended_at}"
                )


def tries(record: Record) -> Iterator[str]:
    for run, attempts in record.attempts_of.items():
        for (step, visit), of_step in groupby(attempts, lambda each: (each.step, each.visit)):
            numbers = [attempt.number for attempt in of_step]
            if numbers != list(range(1, len(numbers) + 1)):
                yield f"{record.name(run)}: step {step}, visit {visit}, has the tries {numbers}"


def losses(record: Record) -> Iterator[str]:
    """Nobody loses a run whose worker lives and reaches the database."""
    strikes = record.performance.strikes
    for attempt in record.attempts:
        if attempt.state not in GONE or attempt.error.startswith("the run was cancelled"):
            continue
        pid = record.workers.get(attempt.worker)
        if not strikes.on_worker(pid, attempt.claimed_at, attempt.ended_at):
            yield (
                f"{record.name(attempt.run_id)}: attempt {attempt.fence} at {attempt.step} was "
                f"lost at {attempt.ended_at}, and nothing fell on its worker {pid} or the database"
            )
