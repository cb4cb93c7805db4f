"""What Romulus could not go on with, and could not hold for a person either: no silent stop, no
loop, and no step that is executed again for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from django.db import connection
from structlog.testing import capture_logs

from reconciliation.models import Hold
from reconciliation.services.holds import open_run_hold
from tests.claiming import (
    ATOMIC_HOLDING,
    HOLDING,
    come_due,
    opening_holds,
    ready_run,
)
from tests.factories import advanced
from workflows.core.definitions import Workflow
from workflows.models import Run
from workflows.selectors.explanations import explain_run
from workflows.services import executor
from workflows.services.claims import Claim
from workflows.services.crashes import hold_later

pytestmark = pytest.mark.django_db

DISK_FULL = "53100"  # an error of the database's operation, whose connection is there


class Openings:
    """Holds that cannot be opened, until the cause is mended."""

    def __init__(self, breaks: Callable[[], Any]) -> None:
        self.breaks = breaks
        self.mended = False
        self.tried = 0

    def __call__(self, claim: Claim, reason: str, message: str) -> None:
        self.tried += 1
        if not self.mended:
            self.breaks()
        open_run_hold(claim, reason, message)


def refuse(code: str) -> Callable[[], None]:
    def raise_it() -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{code}'; END $$")

    return raise_it


def bug() -> None:
    raise KeyError("a bug of ours")


@pytest.fixture(params=[bug, refuse("23514"), refuse("22012")], ids=["bug", "check", "data"])
def openings(request: pytest.FixtureRequest) -> Iterator[Openings]:
    openings = Openings(request.param)
    with opening_holds(openings):
        yield openings


def failing() -> Callable[[Any], int]:
    """A step that fails for ever; gives its calls with `None`."""
    calls = count(1)

    def act(view: Any) -> int:
        number = next(calls)
        if view is not None:
            raise ValueError(f"call {number}")
        return number - 1

    return act


@pytest.mark.parametrize("workflow", [HOLDING, ATOMIC_HOLDING], ids=["plain", "atomic"])
def test_a_run_that_cannot_be_held_says_so_and_is_held_when_it_can_be(
    openings: Openings, workflow: Workflow
) -> None:
    act = failing()
    with capture_logs() as logs:
        run = advanced(ready_run(workflow, act))
    assert (run.state, run.failure["reason"], Hold.objects.count()) == ("ready", "not_held", 0)
    assert [each["event"] for each in logs if each["log_level"] == "error"] == [
        "step.crashed",
        "step.not_held",
    ]
    said = explain_run(run)
    assert "could not be held for a person" in said.sentence
    assert (said.cause, run.attempts.get().error) == ("retry", run.failure["message"])

    # It rests, longer each time, and nothing is executed meanwhile.
    tried = openings.tried
    rests = [run.ready_at - run.attempts.get().ended_at]
    assert advanced(run).fence == run.fence
    come_due(run)
    run = advanced(run)
    rests.append(run.ready_at - run.attempts.latest("fence").ended_at)
    assert (run.state, rests[1]) == ("ready", 2 * rests[0])
    assert openings.tried > tried

    openings.mended = True
    come_due(run)
    run = advanced(run)
    assert (run.state, run.failure["reason"]) == ("held", "step_crashed")
    assert act(None) == 1
    assert Hold.objects.get(run=run).message == run.failure["message"]
    assert run.failure["message"].startswith("Romulus could not go on: ")
    assert "person" not in run.failure["message"]


def test_whoever_lost_the_run_meanwhile_gives_nothing_back(
    openings: Openings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ready_run(HOLDING, failing())

    def too_late(*given: Any) -> None:
        Run.objects.filter(pk=run.pk).update(fence=99)
        hold_later(*given)

    monkeypatch.setattr(executor, "hold_later", too_late)
    run = advanced(run)
    assert openings.tried == 2
    assert (run.state, run.fence, run.failure) == ("running", 99, None)


def test_a_disk_that_is_full_is_no_database_that_is_gone() -> None:
    openings = Openings(bug)

    def first_a_bug() -> None:
        openings.breaks = refuse(DISK_FULL)
        bug()

    openings.breaks = first_a_bug
    with opening_holds(openings):
        run = advanced(ready_run(HOLDING, failing()))
    assert (run.state, run.failure["reason"]) == ("ready", "not_held")
