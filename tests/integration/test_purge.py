"""The end of what is kept: what goes and when, what stays, and what a purge survives."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from uuid import UUID

import pytest
from django.db import transaction
from pytest_django import Settings

from reconciliation.models import Operation
from tests import storages as kinds
from tests.destination import RunningDestination
from tests.factories import held_operation, ready_provider
from tests.purging import (
    DAY,
    FLOW,
    FOR_EVER,
    LARGE,
    MINUTE,
    SMALL,
    age_purge,
    due_at,
    finished_run,
    is_kept,
    leave,
    write,
)
from tests.storages import files_in, use
from workflows import storage
from workflows.models import Attempt, Run
from workflows.registry import registry
from workflows.services import purge
from workflows.services.clock import database_now
from workflows.services.purge import AGAIN, Purged, due_runs, is_purged_input, left_alone, purge_due

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def folder(settings: Settings, tmp_path: Path) -> Path:
    return use(settings, tmp_path / "outputs")


# --- what goes, and when ----------------------------------------------------------------------


def test_outputs_of_every_form_go_and_their_rows_stay(folder: Path) -> None:
    run = finished_run(30 * DAY)
    attempts = [
        leave(run, "plain", SMALL),
        leave(run, "sealed", SMALL),
        leave(run, "brief", LARGE),
        leave(run, "long", LARGE),
    ]
    references = [attempts[2].output, attempts[3].output]
    done = purge_due()
    rows = list(run.attempts.order_by("fence"))
    assert [row.output_form for row in rows] == ["plain", "sealed", "object", "object"]
    assert [row.output for row in rows] == [None, None, *references]
    assert run.attempts.filter(output__isnull=True).count() == 2  # and no JSON null
    assert all(row.purged_at for row in rows)
    assert not any(is_kept(attempt) for attempt in attempts)
    assert not (folder / storage.folder_of(run.pk)).exists()
    assert due_at(run) is None
    assert (done.runs, done.outputs, done.inputs, done.objects, done.failed) == (1, 4, 1, 2, 0)
    assert done.bytes > sum(reference["size"] for reference in references)
    assert purge_due() == Purged()


def test_each_goes_after_its_own_time_and_no_other(folder: Path) -> None:
    run = finished_run(DAY + MINUTE)
    brief, plain, long = (leave(run, step, LARGE) for step in ("brief", "plain", "long"))
    assert purge_due().outputs == 1
    run.refresh_from_db()
    assert [is_kept(each) for each in (brief, plain, long)] == [False, True, True]
    assert files_in(folder) == sorted([plain.output["object"], long.output["object"]])
    assert run.finished_at is not None
    assert run.purge_at == run.finished_at + 10 * DAY
    assert run.input == SMALL
    assert purge_due() == Purged()  # nothing before its time

    Run.objects.update(finished_at=run.finished_at - 9 * DAY)
    age_purge(run, 9 * DAY)
    assert purge_due().outputs == 1
    assert [is_kept(each) for each in (brief, plain, long)] == [False, False, True]
    run.refresh_from_db()
    assert is_purged_input(run.input)
    assert run.finished_at is not None
    assert run.purge_at == run.finished_at + 20 * DAY


def test_the_input_goes_with_the_workflow_s_time_and_says_when() -> None:
    run = finished_run(11 * DAY)
    done = purge_due()
    run.refresh_from_db()
    assert is_purged_input(run.input)
    (said,) = run.input.values()
    assert abs(datetime.fromisoformat(said) - database_now()) < MINUTE
    assert (done.runs, done.outputs, done.inputs, done.bytes) == (1, 0, 1, len(json.dumps(SMALL)))


def test_an_unfinished_run_keeps_everything(folder: Path) -> None:
    run = finished_run(30 * DAY, state="held", finished_at=None)
    attempt = leave(run, "plain", SMALL)
    about_to_be_committed = write(run.pk)
    assert purge_due() == Purged()
    assert is_kept(attempt)
    assert files_in(folder) == [about_to_be_committed]


def test_a_workflow_that_retains_for_ever_is_never_due() -> None:
    run = finished_run(3650 * DAY, FOR_EVER)
    attempt = leave(run, "kept", SMALL)
    assert purge_due() == Purged()
    assert is_kept(attempt)


def test_to_be_looked_at_is_not_to_be_purged() -> None:
    run = finished_run(3650 * DAY, FOR_EVER, purge_at=database_now())
    attempt = leave(run, "kept", SMALL)
    assert purge_due() == Purged()
    assert is_kept(attempt)
    assert due_at(run) is None


def test_what_a_late_worker_brought_goes_too(folder: Path) -> None:
    run = finished_run(11 * DAY)
    late = [leave(run, "plain", LARGE, "superseded"), leave(run, "sealed", SMALL, "superseded")]
    assert purge_due().outputs == 2
    assert not any(is_kept(attempt) for attempt in late)
    assert files_in(folder) == []


def test_what_earlier_tries_left_in_the_storage_goes_too(folder: Path) -> None:
    run, other = finished_run(DAY + MINUTE), finished_run()
    leave(run, "brief", LARGE)
    stays = leave(run, "long", LARGE)
    write(run.pk)
    untouched = write(other.pk)
    done = purge_due()
    assert files_in(folder) == sorted([stays.output["object"], untouched])
    assert done.objects == 2


def test_the_ledger_is_left_alone(destination: RunningDestination) -> None:
    ready_provider("desk", destination.url)
    operation = held_operation(destination)
    before = Operation.objects.filter(pk=operation.pk).values().get()
    run = operation.run
    registry.add(FLOW)
    Run.objects.filter(pk=run.pk).update(
        state="failed",
        workflow=FLOW.name,
        finished_at=database_now() - 30 * DAY,
        purge_at=database_now() - DAY,
        lease_owner=None,
        lease_expires_at=None,
    )
    assert purge_due().runs == 1
    assert Operation.objects.filter(pk=operation.pk).values().get() == before


def test_a_child_is_kept_until_its_parent_can_read_it_no_more() -> None:
    parent = finished_run(workflow=FOR_EVER, state="waiting", finished_at=None)
    child = finished_run(
        30 * DAY, parent=parent, parent_step="kept", parent_visit=1, parent_index=0
    )
    attempt = leave(child, "plain", SMALL)
    assert purge_due() == Purged()
    assert is_kept(attempt)
    assert due_runs_now() == []  # looked at again in an hour

    ended_at = database_now() - 9 * DAY
    Run.objects.filter(pk=parent.pk).update(state="completed", finished_at=ended_at)
    age_purge(child, AGAIN)
    assert purge_due() == Purged()
    assert is_kept(attempt)
    assert due_at(child) == ended_at + 10 * DAY  # counts from the parent's end


def test_a_time_that_was_made_longer_in_the_code_counts() -> None:
    run = finished_run(11 * DAY)
    attempt = leave(run, "long", SMALL)
    Run.objects.filter(pk=run.pk).update(
        purge_at=database_now() - DAY, input={"romulus.purged_at": ""}
    )
    assert purge_due() == Purged()
    assert is_kept(attempt)
    run.refresh_from_db()
    assert run.finished_at is not None
    assert run.purge_at == run.finished_at + 20 * DAY


def test_a_step_that_is_gone_is_kept_as_the_workflow_says() -> None:
    run = finished_run(11 * DAY)
    attempt = leave(run, "long", SMALL)
    Attempt.objects.filter(pk=attempt.pk).update(step="gone")
    assert purge_due().outputs == 1
    assert not is_kept(attempt)


def test_runs_of_an_unknown_version_are_left_alone_and_counted() -> None:
    unknown = finished_run(11 * DAY, version=99)
    known = finished_run(11 * DAY)
    assert left_alone() == [{"workflow": FLOW.name, "version": 99, "runs": 1}]
    assert purge_due().runs == 1
    assert due_at(unknown) is not None
    assert due_at(known) is None
    assert left_alone() == [{"workflow": FLOW.name, "version": 99, "runs": 1}]


def due_runs_now() -> list[UUID]:
    return list(due_runs(database_now()))


def test_those_due_longest_come_first_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purge, "BATCH", 2)
    same = database_now() - 12 * DAY
    runs = [finished_run((15 + number) * DAY) for number in range(5)]
    tied = [finished_run(11 * DAY, purge_at=same) for _ in range(3)]
    order = [run.pk for run in reversed(runs)]
    assert [pk for pk in due_runs_now() if pk in order] == order
    assert sorted(due_runs_now()) == sorted([run.pk for run in (*runs, *tied)])
    assert purge_due(limit=3).runs == 3
    assert purge_due().runs == 5


# --- what a purge survives --------------------------------------------------------------------


def test_a_storage_that_is_away_keeps_no_other_run_from_being_purged(
    settings: Settings, folder: Path
) -> None:
    run, other = finished_run(11 * DAY), finished_run(11 * DAY)
    attempt = leave(run, "plain", LARGE)
    use(settings, folder, kinds.IsAway)
    done = purge_due()
    assert done.failed == 2
    assert not is_kept(attempt)
    for each in (run, other):
        each.refresh_from_db()
        assert is_purged_input(each.input)
    assert files_in(folder) == [attempt.output["object"]]
    assert purge_due() == Purged()  # not again each minute

    use(settings, folder)
    age_purge(run, AGAIN)
    assert purge_due() == Purged(runs=1, objects=1, bytes=attempt.output["size"])
    assert files_in(folder) == []
    assert due_at(run) is None


def test_an_object_that_is_still_there_is_not_taken_for_deleted(
    settings: Settings, folder: Path
) -> None:
    run = finished_run(11 * DAY)
    leave(run, "plain", LARGE)
    use(settings, folder, kinds.DeletesNothing)
    assert purge_due().failed == 1
    assert due_at(run) is not None


def test_a_purge_within_a_transaction_is_refused(folder: Path) -> None:
    run = finished_run(11 * DAY)
    leave(run, "plain", LARGE)
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
        purge_due()
    assert len(files_in(folder)) == 1
