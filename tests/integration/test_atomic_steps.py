"""Atomic steps: what a step writes to this database and its checkpoint are one commit, or nothing.

What happens when its lease is lost is in tests/concurrency/test_stopping_races.py, when its commit
is refused in test_atomic_commits.py there, and when its process is killed in
tests/acceptance/test_checkpoint_kills.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from reconciliation.models import Hold
from tests import storages
from tests.claiming import (
    ATOMIC,
    ATOMIC_HOLDING,
    ATOMIC_RETRIED,
    ONCE,
    acts,
    attempts,
    expire_lease,
    lose_worker,
    raising,
    ready_run,
)
from tests.factories import advanced, tenant
from workflows.core.errors import PermanentError
from workflows.core.retry import MAX_LOST_ATTEMPTS
from workflows.models import Run, Tenant
from workflows.registry import registry
from workflows.services.executor import advance
from workflows.services.ownership import Keeper
from workflows.services.results import result_of
from workflows.services.run_view import RunView
from workflows.services.runs import start
from workflows.services.stopping import pause_run

pytestmark = pytest.mark.django_db


def written() -> list[str]:
    """What the steps of these tests write: a row in a table of this database each time."""
    return list(Tenant.objects.filter(slug__startswith="row").values_list("slug", flat=True))


def write(row: str = "row") -> None:
    Tenant.objects.create(slug=row, name=row)


def writing(then: Callable[[RunView], Any]) -> Callable[[RunView], Any]:
    """A step that writes its row and then does `then`."""

    def work(run: RunView) -> Any:
        write()
        return then(run)

    return work


def test_what_it_writes_commits_with_its_checkpoint() -> None:
    run = advanced(ready_run(ATOMIC, writing(lambda _: 7)))
    assert (run.state, result_of(run), written()) == ("completed", 7, ["row"])
    assert attempts(run) == [("act", 1, "committed"), ("after", 1, "committed")]


def test_what_it_has_written_it_reads_and_so_does_the_next_step() -> None:
    run = advanced(ready_run(ATOMIC, writing(lambda _: written())))
    assert result_of(run) == ["row"]


@pytest.mark.parametrize(
    ("workflow", "error", "state"),
    [
        (ATOMIC, ValueError("no such order"), "failed"),
        (ATOMIC_HOLDING, ValueError("no such order"), "held"),
        (ATOMIC_RETRIED, PermanentError("it was paid less"), "failed"),
        (ATOMIC_RETRIED, ValueError("again, please"), "ready"),
        (ATOMIC, SystemExit(1), "failed"),
    ],
)
def test_what_a_failed_one_has_written_is_undone(
    workflow: Any, error: BaseException, state: str
) -> None:
    run = advanced(ready_run(workflow, writing(raising(error))))
    assert (run.state, written()) == (state, [])
    assert attempts(run) == [("act", 1, "failed")]


def test_a_retry_finds_nothing_of_the_earlier_try() -> None:
    run = ready_run(ATOMIC_RETRIED, writing(lambda run: run.attempt if run.attempt == 3 else 1 / 0))
    for _ in range(3):
        run = advanced(run)
    assert (run.state, result_of(run), written()) == ("completed", 3, ["row"])


@pytest.mark.parametrize("value", [object(), 10**400, "a\x00b"], ids=["object", "number", "text"])
def test_what_one_has_written_whose_output_cannot_be_stored_is_undone(value: Any) -> None:
    run = advanced(ready_run(ATOMIC, writing(lambda _: value)))
    assert (run.state, run.failure["reason"]) == ("held", "output_not_storable")
    assert written() == []
    assert Hold.objects.get().state == "open"


@pytest.mark.parametrize("kind", [storages.IsFull, storages.LosesBytes])
def test_what_one_has_written_whose_output_was_not_kept_is_undone(
    kind: type[Any], settings: Settings, tmp_path: Path
) -> None:
    """There is no checkpoint: when a person lets it be tried again, it does its work again."""
    storages.use(settings, tmp_path, kind)
    run = advanced(ready_run(ATOMIC, writing(lambda _: "x" * 200)))
    assert (run.state, run.failure["reason"]) == ("held", "output_not_kept")
    assert written() == []
    assert not run.attempts.outputs().exists()


def test_a_large_output_is_kept_as_that_of_any_step(settings: Settings, tmp_path: Path) -> None:
    storages.use(settings, tmp_path)
    run = advanced(ready_run(ATOMIC, writing(lambda _: "x" * 200)))
    assert (run.state, result_of(run), written()) == ("completed", "x" * 200, ["row"])


def test_an_error_of_the_database_that_it_does_not_look_at_undoes_it() -> None:
    def breaks(run: RunView) -> int:
        write()
        with pytest.raises(IntegrityError):
            write()  # now the transaction is beyond saving, whatever the step says
        return 1

    run = advanced(ready_run(ATOMIC, breaks))
    assert (run.state, run.failure["reason"], written()) == ("failed", "step_failed", [])
    assert attempts(run) == [("act", 1, "failed")]


def test_an_error_of_the_database_that_it_takes_back_by_itself_is_none() -> None:
    def mends(run: RunView) -> int:
        write()
        with pytest.raises(IntegrityError), transaction.atomic():
            write()
        return 1

    run = advanced(ready_run(ATOMIC, mends))
    assert (run.state, written()) == ("completed", ["row"])


def test_a_statement_of_its_own_that_takes_too_long_is_its_failure() -> None:
    def waits(run: RunView) -> None:
        write()
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = '1ms'; SELECT pg_sleep(60)")

    run = advanced(ready_run(ATOMIC, waits))
    assert (run.state, written()) == ("failed", [])
    assert run.failure is not None
    assert "statement timeout" in run.failure["message"]


@pytest.mark.usefixtures("lost_session")
def test_an_outage_undoes_it_and_leaves_it_to_its_lease() -> None:
    run = ready_run(ATOMIC, writing(raising(OperationalError("the connection is lost"))))
    with pytest.raises(OperationalError):
        advance(run.pk, Keeper())
    run.refresh_from_db()
    assert (run.state, written()) == ("running", [])
    acts["act"] = writing(lambda _: 2)
    expire_lease(run)
    run = advanced(run)
    assert (run.state, result_of(run), written()) == ("completed", 2, ["row"])


def test_a_run_that_it_starts_starts_with_it(
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    registry.add(ONCE)

    def starting(run: RunView) -> str:
        return str(start(ONCE.name, {"act": "act"}, tenant=tenant(), start_key="k").pk)

    run = ready_run(ATOMIC, starting)
    with django_capture_on_commit_callbacks() as told:
        run = advanced(run)
    assert Run.objects.get(start_key="k").pk.hex == str(result_of(run)).replace("-", "")
    assert told  # and workers are told of it after the commit


def test_a_run_that_a_failed_one_has_started_was_never_there() -> None:
    registry.add(ONCE)

    def starting(run: RunView) -> None:
        start(ONCE.name, {"act": "act"}, tenant=tenant(), start_key="k")
        raise ValueError("no such order")

    run = advanced(ready_run(ATOMIC, starting))
    assert run.state == "failed"
    assert not Run.objects.filter(start_key="k").exists()


def test_a_pause_lets_it_commit_whole_and_stops_the_run_after_it() -> None:
    run = ready_run(ATOMIC)

    def pausing(view: RunView) -> int:
        write()
        pause_run(run.pk, by="ada")
        return 1

    acts["act"] = pausing
    run = advanced(run)
    assert (run.state, run.step, written()) == ("ready", "after", ["row"])


def test_one_that_ends_its_workers_is_held_and_not_run_again() -> None:
    run = ready_run(ATOMIC, writing(lambda _: 1))
    for _ in range(MAX_LOST_ATTEMPTS):
        lose_worker(run)
    run = advanced(run)
    assert (run.state, run.failure["reason"], written()) == ("held", "workers_lost", [])
    assert Hold.objects.get().state == "open"


def test_a_step_that_is_not_atomic_keeps_what_it_has_written_though_it_fails() -> None:
    """What `atomic` is there for."""
    advanced(ready_run(ONCE, writing(raising(ValueError()))))
    assert written() == ["row"]
