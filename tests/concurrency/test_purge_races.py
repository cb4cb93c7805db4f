"""Purges beside other processes: with real commits, and with the end of one in between."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from pytest_django import Settings

from tests import storages as kinds
from tests.purging import DAY, LARGE, SMALL, age_purge, finished_run, is_kept, leave
from tests.storages import files_in, use
from workflows.services.purge import AGAIN, purge_due


@pytest.fixture
def folder(settings: Settings, tmp_path: Path) -> Path:
    return use(settings, tmp_path / "outputs")


def test_killed_before_deleting_the_row_says_purged_and_the_next_purge_deletes(
    committed_db: str, settings: Settings, folder: Path
) -> None:
    run = finished_run(11 * DAY)
    attempt = leave(run, "plain", LARGE)
    use(settings, folder, kinds.DiesDeleting)
    with pytest.raises(KeyboardInterrupt):
        purge_due()
    with psycopg.connect(committed_db) as other:
        row = other.execute("SELECT purged_at FROM workflows_attempt").fetchone()
    assert row is not None
    assert row[0] is not None
    assert files_in(folder) == [attempt.output["object"]]

    use(settings, folder)
    age_purge(run, AGAIN)
    assert purge_due().objects == 1
    assert files_in(folder) == []


def test_a_run_that_another_purge_is_at_is_left_to_it(committed_db: str, folder: Path) -> None:
    busy = finished_run(12 * DAY)
    finished_run(11 * DAY)
    attempt = leave(busy, "plain", SMALL)
    with psycopg.connect(committed_db) as other:
        other.execute("SELECT 1 FROM workflows_run WHERE id = %s FOR UPDATE", [busy.pk])
        assert purge_due().runs == 1
    assert is_kept(attempt)
    assert purge_due().runs == 1
    assert not is_kept(attempt)
