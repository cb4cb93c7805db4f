"""What people stopped: it stayed stopped, from the moment that they were told so."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from romulus_site.torture.errands import Pause
from romulus_site.torture.plan import Errand
from romulus_site.torture.record import Record
from workflows.core.states import AttemptState, RunState
from workflows.services.pauses import FRESH_SECONDS

# A worker that is in the middle of a run knows of a pause of its whole workflow after this.
KNOWN_AFTER = timedelta(seconds=FRESH_SECONDS + 0.5)


def cancelled(record: Record) -> Iterator[str]:
    for told in record.performance.cancellations:
        run = record.run_of.get(told.run)
        if run is None:
            yield f"run {told.run} was cancelled, and does not exist"
            continue
        if told.outcome == "cancelled" and run.state != RunState.CANCELLED:
            yield f"{record.name(run)}: somebody was told that it is cancelled; it is {run.state}"
        if told.outcome != "over" and run.cancel_asked_at is None:
            yield f"{record.name(run)}: somebody asked for its end, and that is not on record"
        if run.state != RunState.CANCELLED or run.finished_at is None:
            continue
        end = min(run.finished_at, told.at) if told.outcome == "cancelled" else run.finished_at
        for attempt in record.attempts_of.get(run.pk, []):
            if attempt.state == AttemptState.COMMITTED and attempt.ended_at > end:
                yield (
                    f"{record.name(run)} was cancelled at {end}, and attempt {attempt.fence} "
                    f"committed {attempt.step} at {attempt.ended_at}"
                )


def paused(record: Record) -> Iterator[str]:
    for pause in record.performance.pauses:
        if pause.until is None:
            yield f"{pause.what} was paused, and never let go on"
        elif pause.kind is Errand.SWITCH:
            yield from sent_while_paused(record, pause)
        else:
            yield from begun(record, pause, pause.until)


def begun(record: Record, pause: Pause, until: datetime) -> Iterator[str]:
    """Attempts that began meanwhile. What is being cancelled goes on: it ends."""
    of_workflow = pause.kind is Errand.PAUSE_ALL
    since = pause.since + (KNOWN_AFTER if of_workflow else timedelta(0))
    for attempt in record.attempts:
        run = record.run_of[attempt.run_id]
        whose = run.workflow if of_workflow else str(run.pk)
        began = since < attempt.claimed_at < until
        if began and whose == pause.what and run.cancel_asked_at is None:
            yield (
                f"{record.name(run)} was paused from {pause.since} to {until}, "
                f"and attempt {attempt.fence} began {attempt.step} at {attempt.claimed_at}"
            )


def sent_while_paused(record: Record, pause: Pause) -> Iterator[str]:
    """Promise P13: nothing is sent to a provider whose dispatch is not on."""
    assert pause.until is not None
    personality = pause.what.removeprefix("torture-")
    personalities = {op.pk: record.personality_of(op) for op in record.operations}
    for row in record.transmissions:
        if personalities[row.operation_id] != personality:
            continue
        if pause.since < row.started_at < pause.until:
            yield (
                f"dispatch to {pause.what} was paused from {pause.since} to {pause.until}, and "
                f"send {row.number} of operation {row.operation_id} began at {row.started_at}"
            )
