"""What people may do to a run, and what they are told before they do it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.run_facts import ADA, FACTS, NOW, WHOLE, ago
from workflows.core.controls import Consequence, Control, consequence, offered
from workflows.core.durations import moment, on
from workflows.core.run_facts import RunFacts
from workflows.core.states import RunState
from workflows.core.words import who

CANCEL, PAUSE, RESUME = Control.CANCEL, Control.PAUSE, Control.RESUME
LEASED = {"state": RunState.RUNNING, "worker": "host/17", "lease_expires_at": ago(-9)}


def facts(**changes: Any) -> RunFacts:
    return replace(FACTS, **changes)


def told(control: Control, *, started: int = 0, **changes: Any) -> Consequence:
    return consequence(control, facts(**changes), NOW, started=started)


@pytest.mark.parametrize("state", RunState)
def test_what_is_over_is_offered_nothing(state: RunState) -> None:
    assert bool(offered(facts(state=state))) != state.is_final


def test_a_run_is_paused_once_resumed_once_and_cancelled_once() -> None:
    assert offered(facts()) == (PAUSE, CANCEL)
    assert offered(facts(pause=ADA)) == (RESUME, CANCEL)
    assert offered(facts(cancel=ADA)) == ()
    # What is paused as a whole can be paused and cancelled by itself all the same.
    assert offered(facts(pauses=(WHOLE,))) == (PAUSE, CANCEL)


@pytest.mark.parametrize("control", Control)
def test_each_names_what_it_does_and_the_way_out(control: Control) -> None:
    said = told(control, pause=ADA)
    assert said.title == f"{control.value.capitalize()} this run?"
    assert said.button == f"{control.value.capitalize()} the run"
    assert said.keep
    assert said.happens
    assert said.grave == (control is CANCEL)


def test_cancelling_says_that_an_open_write_is_settled_first() -> None:
    said = told(CANCEL, unsettled="Refund 125.00")
    assert said.happens[0].startswith("The outcome of “Refund 125.00” is open. It is settled first")
    assert not any("at once" in line for line in said.happens)


def test_cancelling_says_that_the_step_at_work_is_refused_and_kept() -> None:
    said = told(CANCEL, **LEASED)
    assert "the run ends at once" in said.happens[0]
    assert "Worker host/17 is at this step now and is not interrupted" in said.happens[1]
    # One that went quiet brings nothing to speak of.
    quiet = told(CANCEL, **(LEASED | {"lease_expires_at": ago(9)}))
    assert len(quiet.happens) == 1


def test_cancelling_says_what_becomes_of_holds_and_of_runs_that_it_started() -> None:
    said = told(CANCEL, state=RunState.HELD, started=3)
    assert said.happens[1] == "Its hold is closed: nobody has to decide it any more."
    assert said.happens[2].startswith("3 unfinished runs that it started are cancelled too")
    assert told(CANCEL, started=1).happens[1].startswith("1 unfinished run that it started is")


def test_pausing_says_what_is_finished_and_what_goes_on() -> None:
    assert told(PAUSE, **LEASED).happens == (
        "Worker host/17 finishes this step, create_refund, and its result is kept. The run stops "
        "before the next one.",
    )
    assert "No worker takes it up" in told(PAUSE).happens[0]
    for state in (RunState.WAITING, RunState.HELD):
        assert "goes on. When that has come" in told(PAUSE, state=state).happens[0]
    said = told(PAUSE, started=2)
    assert "Look-ups, holds and decisions go on." in said.stays[0]
    assert "is not sent again before the run is resumed" in said.stays[0]
    assert said.stays[1] == "The runs that it started go on: each is paused on its own page."


def test_resuming_says_what_still_keeps_it() -> None:
    said = told(RESUME, pauses=(WHOLE,), workers=())
    assert said.happens[1].startswith("Workflow refund is paused too, by bo")
    assert said.happens[2] == "No live worker has refund version 4: it waits for one."
    assert "when what it waits for" in told(RESUME, state=RunState.WAITING).happens[0]


# --- words ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actor", "name"),
    [
        ("user:3 ada", "ada"),
        ("user:3 ada lovelace", "ada lovelace"),
        ("command:root", "root at the terminal"),
        ("step collect of its parent", "step collect of its parent"),
        ("system", "system"),
        ("user:3", "user:3"),
        ("", ""),
    ],
)
def test_actors_of_the_record_have_names(actor: str, name: str) -> None:
    assert who(actor) == name


def test_times_are_said_with_their_zone_and_the_day_where_it_is_another() -> None:
    assert (moment(NOW, NOW), on(NOW, NOW)) == ("03:00:12 UTC", "at 03:00:12 UTC")
    day_before = NOW - timedelta(days=1)
    assert moment(day_before, NOW) == "9 Mar 2026, 03:00:12 UTC"
    assert on(day_before, NOW) == "on 9 Mar 2026, 03:00:12 UTC"
