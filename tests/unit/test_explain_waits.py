"""Promise P12 for waits: since when, for what, until when and then what, and what has come."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.unit.run_facts import ADA, FACTS, NOW, ago, worker
from workflows.core.explain import Cause, Explanation, explain
from workflows.core.near_misses import Expected, NearMiss, Nearness, Said
from workflows.core.states import RunState, WaitState
from workflows.core.wait_facts import Taken, WaitFacts

AT = "at step 2 of 3, create_refund"
WAITS = f"It waits {AT} since 02:00:12 UTC for charge.refunded with correlation “48213”"
ID = UUID(int=7)


def came(seconds: float, **said: Any) -> Said:
    defaults = {"type": "charge.refunded", "correlation": "48213", "event_id": "evt_1"}
    return Said(id=ID, received_at=ago(seconds), source="Stripe", **(defaults | said))


def wait(**facts: Any) -> WaitFacts:
    defaults: dict[str, Any] = {
        "state": WaitState.WAITING,
        "expected": Expected(("charge.refunded",), "48213"),
        "started_at": ago(3600),
        "looked": True,
    }
    return WaitFacts(**(defaults | facts))


def why(facts: WaitFacts, state: RunState = RunState.WAITING, **run: Any) -> Explanation:
    return explain(replace(FACTS, state=state, wait=facts, **run), NOW)


def test_nothing_has_come() -> None:
    said = why(wait())
    assert said.cause is Cause.EVENT
    assert said.sentence == f"{WAITS}, without a deadline. No such event has come."
    assert (said.moves, said.owner) == ("The event.", "whoever sends charge.refunded")
    assert said.facts["wait"]["correlation"] == "48213"
    assert (said.facts["arrived"], said.facts["near_misses"]) == (None, [])


@pytest.mark.parametrize(
    ("on_deadline", "then"),
    [
        ("fail", "; then the run fails"),
        ("continue", "; then it goes on without"),
        ("hold", "; then a person is asked"),
        ("ask_again", "; then it goes on at ask_again"),
        ("", ""),
    ],
)
def test_until_when_and_what_follows(on_deadline: str, then: str) -> None:
    said = why(wait(deadline=NOW + timedelta(hours=1), on_deadline=on_deadline))
    assert said.sentence == f"{WAITS}, until 04:00:12 UTC{then}. No such event has come."
    assert said.moves == "The event, or its deadline."


def test_several_types_and_a_number_of_events() -> None:
    expected = Expected(("a", "b"), "48213")
    said = why(wait(expected=expected, needed=3, got=2))
    assert "for 3 events of a or b with correlation “48213”" in said.sentence
    assert said.sentence.endswith("No more has come. It has 2 of 3.")


def test_near_misses_are_told_with_what_differs_and_how_old_they_are() -> None:
    near = (
        NearMiss(Nearness.SPACE, came(120, correlation="48213 ")),
        NearMiss(Nearness.TYPE, came(60, type="charge.updated")),
    )
    said = why(wait(near=near))
    assert said.sentence.endswith(
        "No such event has come, but 2 events came close: charge.refunded “48213 ”, 2 min ago "
        "(Only white space differs); charge.updated “48213”, 1 min ago (The correlation is the "
        "same, the type is another)."
    )
    assert "attaching it by hand" in said.moves
    assert [each["differs"] for each in said.facts["near_misses"]] == ["space", "type"]


def test_an_event_that_came_and_is_not_processed_has_an_age() -> None:
    said = why(wait(arrived=came(4)))
    assert said.cause is Cause.ARRIVED
    assert said.sentence.endswith("charge.refunded came 4 s ago. It is not processed yet.")
    assert said.moves == "The next sweep gives it to the run."


def test_without_a_sweep_whoever_runs_the_workers_owns_it() -> None:
    still = (worker(swept_at=ago(300)),)
    said = why(wait(arrived=came(400)), workers=still)
    assert (said.cause, said.owner) == (Cause.SWEEP_BEHIND, "whoever runs the workers")


def test_an_event_that_others_could_take_too_waits_for_a_person() -> None:
    said = why(wait(arrived=came(4), ambiguous=True))
    assert said.cause is Cause.AMBIGUOUS
    assert "Other waits could take it too, and none was picked." in said.sentence


def test_a_deadline_that_has_passed_is_carried_out_by_the_sweep() -> None:
    said = why(wait(deadline=ago(2), on_deadline="fail"))
    assert said.sentence.endswith("Its time is over.")
    assert said.moves == "The next sweep carries that out."


def test_a_list_that_did_not_look_claims_nothing() -> None:
    assert why(wait(looked=False)).sentence == f"{WAITS}, without a deadline."


def over(state: WaitState, **facts: Any) -> WaitFacts:
    return wait(state=state, resolved_at=ago(5), **facts)


def test_who_resolved_it_and_with_which_event() -> None:
    by_rule = Taken(came(6), ago(5))
    said = why(over(WaitState.RESOLVED, taken=(by_rule,)), RunState.READY)
    assert said.sentence.startswith(
        "Its wait was resolved at 03:00:07 UTC by charge.refunded evt_1 of Stripe. It is ready"
    )
    by_hand = Taken(came(6), ago(5), by="user:3 ada", reason="Seen at the provider.")
    said = why(over(WaitState.RESOLVED, taken=(by_hand,)), RunState.READY)
    assert "evt_1 of Stripe, attached by ada: Seen at the provider. It is" in said.sentence
    assert said.facts["taken"][0]["by"] == "user:3 ada"


def test_a_wait_that_ran_out_is_told_before_what_came_of_it() -> None:
    said = why(over(WaitState.EXPIRED), RunState.HELD, message="Nobody answered.")
    assert said.sentence.startswith(
        "Its wait for charge.refunded with correlation “48213” ended at 03:00:07 UTC without it. "
        "It is held"
    )


def test_a_pause_is_told_besides() -> None:
    said = why(wait(), pause=ADA)
    assert "Besides, it is paused by ada" in said.sentence
