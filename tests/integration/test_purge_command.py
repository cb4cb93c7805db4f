"""`manage.py purge`, and the purge that workers do by themselves."""

from __future__ import annotations

import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from tests import storages as kinds
from tests.purging import DAY, LARGE, SMALL, due_at, finished_run, is_kept, leave, write
from tests.storages import files_in, use
from tests.waiting import wait_for
from workflows.core.errors import OutputsAway
from workflows.models import Worker
from workflows.services.clock import database_now
from workflows.services.event_purge import PurgedEvents
from workflows.services.purge import Purged
from workflows.services.seldom import Seldom, collect_as

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def folder(settings: Settings, tmp_path: Path) -> Path:
    return use(settings, tmp_path / "outputs")


# --- the command ------------------------------------------------------------------------------


def said(*arguments: str) -> str:
    out = io.StringIO()
    call_command("purge", *arguments, stdout=out)
    return out.getvalue()


def told(*arguments: str) -> Any:
    return json.loads(said(*arguments, "--json"))


def test_a_dry_run_changes_nothing_and_says_what_a_purge_would_do(folder: Path) -> None:
    run = finished_run(30 * DAY)
    attempt = leave(run, "plain", LARGE)
    leave(run, "sealed", SMALL)
    write(run.pk, 30 * DAY)
    write(finished_run().pk, 30 * DAY)
    would = told("--dry-run", "--orphans")
    run.refresh_from_db()
    assert (would["dry_run"], would["purged"]["objects"], would["orphans"]["objects"]) == (
        True,
        2,
        2,
    )
    assert len(files_in(folder)) == 3
    assert is_kept(attempt)
    assert run.input == SMALL
    assert run.purge_at == due_at(run)

    did = told("--orphans")
    assert did["purged"] == would["purged"]
    assert did["orphans"]["objects"] == 1  # the other one went with its run
    assert files_in(folder) == []


def test_without_being_asked_for_orphans_stay(folder: Path) -> None:
    write(finished_run().pk, 30 * DAY)
    assert told() == {
        "dry_run": False,
        "purged": asdict(Purged()),
        "events": asdict(PurgedEvents()),
        "orphans": None,
        "left_alone": [],
    }
    assert len(files_in(folder)) == 1


def test_the_command_says_it_in_lines() -> None:
    leave(finished_run(11 * DAY), "plain", LARGE)
    finished_run(11 * DAY, version=99)
    write(uuid4(), 30 * DAY)
    lines = said("--orphans").splitlines()
    assert lines[0].startswith("1 runs purged: 1 outputs, 1 inputs, 1 objects, ")
    assert lines[1].startswith("0 orphans collected")
    assert "1 folders of runs that this database lacks" in lines[2]
    assert "1 runs of tests.purged version 99" in lines[3]
    assert said("--dry-run").startswith("It would be: ")


def test_the_command_fails_when_objects_are_left(settings: Settings, folder: Path) -> None:
    leave(finished_run(11 * DAY), "plain", LARGE)
    write(finished_run().pk, 30 * DAY)
    use(settings, folder, kinds.DeletesNothing)
    for arguments, sentence in (((), "objects of 1 runs"), (("--orphans",), "1 orphans")):
        with pytest.raises(CommandError, match=sentence) as caught:
            said(*arguments)
        assert caught.value.returncode == 1


def test_the_command_says_that_the_storage_is_away(settings: Settings, folder: Path) -> None:
    use(settings, folder, kinds.IsAway)
    with pytest.raises(CommandError, match="IsAway"):
        said("--orphans")


# --- by themselves ----------------------------------------------------------------------------


def test_a_duty_is_done_when_its_time_has_come_and_not_at_the_start_of_a_process() -> None:
    done: list[int] = []
    duty = Seldom("test", lambda: done.append(1), seconds=3600)
    assert [duty(), duty()] == [0, 0]
    soon = Seldom("test", lambda: done.append(1), seconds=0.05)
    assert soon() == 0
    wait_for(soon, "it is time")
    wait_for(lambda: done == [1], "it is done")


def test_a_duty_that_hangs_holds_up_nothing_and_is_not_begun_again() -> None:
    begun: list[int] = []
    hangs = [True]

    def work() -> None:
        begun.append(1)
        wait_for(lambda: not hangs[0], "the storage answers")

    duty = Seldom("test", work, seconds=0)
    assert [duty(), duty(), duty()] == [1, 0, 0]
    hangs[0] = False
    wait_for(lambda: not duty.is_at_work(), "it is done")
    assert begun == [1]
    assert duty() == 1
    wait_for(lambda: not duty.is_at_work(), "it is done again")


def test_a_duty_that_fails_is_done_again() -> None:
    done: list[int] = []

    def work() -> None:
        done.append(1)
        raise OutputsAway("the storage is away")

    duty = Seldom("test", work, seconds=0)
    duty()
    for number in (1, 2):
        wait_for(lambda number=number: (duty(), len(done) >= number)[1], "it is done")
    wait_for(lambda: not duty.is_at_work(), "it is done")


def test_the_eldest_live_worker_collects_orphans(folder: Path) -> None:
    write(finished_run().pk, 30 * DAY)
    elder, younger = (
        Worker.objects.create(host="here", pid=1, workflows=[], seen_at=database_now())
        for _ in range(2)
    )
    collect_as(younger.pk)
    assert len(files_in(folder)) == 1
    Worker.objects.filter(pk=elder.pk).update(seen_at=database_now() - DAY)  # it is gone
    collect_as(younger.pk)
    assert files_in(folder) == []
