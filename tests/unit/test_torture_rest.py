"""What a torture waits for, and which blow explains what."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from romulus_site.torture.rest import at_rest
from romulus_site.torture.strikes import Strike, strikes_of
from workflows.models import Run

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
LEASE = 3.0


def run(state: str, parent: UUID | None = None) -> Run:
    return Run(pk=uuid4(), state=state, parent_id=parent)


@pytest.mark.parametrize("state", ["ready", "running", "waiting"])
def test_what_something_should_move_is_not_at_rest(state: str) -> None:
    assert at_rest([run(state)], set()) == set()


def test_a_held_run_is_at_rest_unless_its_operation_is_due() -> None:
    held = run("held")
    assert at_rest([held], set()) == {held.pk}
    assert at_rest([held], {held.pk}) == set()


def test_a_parent_is_at_rest_when_all_its_unfinished_children_are() -> None:
    grandparent = run("waiting")
    parent = run("waiting", grandparent.pk)
    held = run("held", parent.pk)
    assert at_rest([grandparent, parent, held], set()) == {grandparent.pk, parent.pk, held.pk}
    moving = run("ready", parent.pk)
    assert at_rest([grandparent, parent, held, moving], set()) == {held.pk}


def test_a_parent_whose_children_are_over_is_not_at_rest() -> None:
    assert at_rest([run("waiting")], set()) == set()


@pytest.mark.parametrize(
    ("strike", "explains"),
    [
        (Strike("worker", "killed", NOON, None, pid=7), True),
        (Strike("worker", "killed", NOON, None, pid=8), False),
        (Strike("worker", "killed", NOON + SECOND * 11, None, pid=7), False),  # after its end
        (Strike("worker", "killed", NOON - SECOND * 60, None, pid=7), True),  # it stays dead
        (Strike("worker", "frozen", NOON - SECOND * 60, NOON - SECOND * 50, pid=7), False),
        (Strike("worker", "frozen", NOON - SECOND * 60, NOON - SECOND * 2, pid=7), True),
        (Strike("database", "restarted", NOON, NOON + SECOND), True),  # of whichever worker
        (Strike("destination", "killed", NOON, NOON + SECOND), False),
    ],
)
def test_what_explains_that_a_worker_lost_a_run(strike: Strike, explains: bool) -> None:
    """An attempt of worker 7 from noon, for ten seconds."""
    strikes = strikes_of([strike], LEASE)
    assert strikes.on_worker(7, NOON, NOON + SECOND * 10) is explains
