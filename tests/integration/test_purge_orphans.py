"""Objects that no output names: which are collected, and which are left alone."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from django.core.files.base import ContentFile
from pytest_django import Settings

from tests import storages as kinds
from tests.purging import DAY, LARGE, MINUTE, age_object, finished_run, is_kept, leave, write
from tests.storages import files_in, use
from workflows import storage
from workflows.core.errors import OutputsAway
from workflows.models import Attempt
from workflows.services import orphans
from workflows.services.clock import database_now
from workflows.services.orphans import Collected, collect_orphans
from workflows.services.outputs import read_output

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def folder(settings: Settings, tmp_path: Path) -> Path:
    return use(settings, tmp_path / "outputs")


def test_an_orphan_is_collected_once_it_is_too_old_for_a_commit(folder: Path) -> None:
    run = finished_run(state="held", finished_at=None)
    old, young = write(run.pk, DAY + MINUTE), write(run.pk, DAY - MINUTE)
    referred = leave(run, "plain", LARGE)
    age_object(referred.output["object"], 30 * DAY)
    collected = collect_orphans(DAY)
    assert collected == Collected(objects=1, bytes=10, young=1)
    assert files_in(folder) == sorted([young, referred.output["object"]])
    assert old not in files_in(folder)
    assert read_output(referred) == LARGE


def test_what_a_late_worker_brought_is_no_orphan() -> None:
    run = finished_run()
    late = leave(run, "plain", LARGE, "superseded")
    age_object(late.output["object"], 30 * DAY)
    assert collect_orphans(DAY) == Collected()
    assert is_kept(late)


def test_the_object_of_a_purged_output_is_an_orphan(folder: Path) -> None:
    run = finished_run()
    attempt = leave(run, "plain", LARGE)
    age_object(attempt.output["object"], 30 * DAY)
    Attempt.objects.update(purged_at=database_now())
    assert collect_orphans(DAY).objects == 1
    assert files_in(folder) == []


def test_what_is_not_ours_is_left_alone(folder: Path) -> None:
    elsewhere = write(uuid4(), 30 * DAY)  # another installation's, or newer than our backup
    run = finished_run()
    write(run.pk, 30 * DAY)
    names = ["readme.txt", "backups/dump.sql", f"{run.pk}/x", f"abcdef/{run.pk}/x", "abcdef/x/y"]
    for name in names:
        storage.outputs().save(name, ContentFile(b"x"))
        age_object(name, 30 * DAY)
    assert collect_orphans(DAY) == Collected(objects=1, bytes=10, unknown=1)
    assert files_in(folder) == sorted([elsewhere, *names])


def test_the_empty_folder_of_a_finished_run_goes(folder: Path) -> None:
    over, going_on = finished_run(), finished_run(state="held", finished_at=None)
    for run in (over, going_on):
        write(run.pk, 30 * DAY)
    collect_orphans(DAY)
    assert not (folder / storage.folder_of(over.pk)).exists()
    assert (folder / storage.folder_of(going_on.pk)).exists()  # it may be about to write there


def test_orphans_are_found_page_by_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphans, "BATCH", 2)
    for _ in range(5):
        write(finished_run().pk, 30 * DAY)
    assert collect_orphans(DAY).objects == 5
    assert files_in(folder) == []


def test_an_orphan_that_cannot_be_deleted_keeps_no_other(settings: Settings, folder: Path) -> None:
    for _ in range(2):
        write(finished_run().pk, 30 * DAY)
    use(settings, folder, kinds.DeletesNothing)
    assert collect_orphans(DAY) == Collected(failed=2)


def test_a_storage_that_lists_nothing_is_no_empty_storage(settings: Settings, folder: Path) -> None:
    use(settings, folder, kinds.IsAway)
    with pytest.raises(OutputsAway, match="does not list"):
        collect_orphans(DAY)


def test_without_any_object_there_is_nothing_to_collect() -> None:
    assert collect_orphans(DAY) == Collected()
