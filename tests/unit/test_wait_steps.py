"""What an author may say of a wait step, and what is refused, with file and line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from workflows.core.definitions import END, ReceivedEvent, Workflow
from workflows.core.errors import InvalidDefinition
from workflows.core.steps import Step
from workflows.core.waits import OpenWait, lock_key, lock_keys, takers

DAY = timedelta(days=1)


class Opaque:
    """No type that a value could be stored under."""


def waiting(**options: Any) -> Workflow:
    flow = Workflow("flow")

    @flow.wait(**({"event": "a.b"} | options))
    def paid(run: Any) -> str:
        return "1"

    @flow.step(then=END)
    def ship(run: Any) -> None: ...

    @flow.step()
    def remind(run: Any) -> None: ...

    return flow


def step_of(**options: Any) -> Step:
    return waiting(**options).steps["paid"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"event": ""}, "event= names the type of the event, or several"),
        ({"event": []}, "event= names the type of the event, or several"),
        ({"event": ["a.b", "x" * 201]}, "event= names the type of the event, or several"),
        ({"within": DAY, "until": datetime(2026, 1, 1, tzinfo=UTC)}, "one deadline is enough"),
        ({"within": 3600}, "within= is a timedelta, or a function that returns one"),
        ({"until": datetime(2026, 1, 1)}, "until= is a datetime with its zone"),  # noqa: DTZ001
        ({"on_deadline": "hold"}, "says on_deadline='hold' and has no deadline: add within="),
        ({"within": DAY, "on_deadline": "Give up"}, "one of ('fail', 'continue', 'hold'), END or"),
        ({"within": DAY, "on_deadline": "nowhere"}, "names 'nowhere' in on_deadline=, which"),
        ({"count": 0}, "count=0: a whole number from 1 to 1,000"),
        ({"count": True}, "count=True: a whole number from 1 to 1,000"),
        ({"payload": Opaque}, "cannot be stored"),
        ({"on_failure": "shrug"}, "on_failure='shrug'"),
    ],
)
def test_what_no_wait_can_be_is_refused_with_its_line(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        waiting(**options).check()
    assert said in str(refused.value)
    assert str(refused.value).startswith(f"{__file__}:")


def test_a_function_that_returns_no_text_is_refused() -> None:
    flow = Workflow("flow")
    with pytest.raises(InvalidDefinition, match="annotate it -> str"):

        @flow.wait(event="a.b")
        def paid(run: Any) -> int:
            return 1


def test_a_step_called_like_a_word_cannot_be_named_by_its_function() -> None:
    flow = Workflow("flow")

    @flow.step()
    def hold(run: Any) -> None: ...

    with pytest.raises(InvalidDefinition, match="which is a word of its own there"):

        @flow.wait(event="a.b", within=DAY, on_deadline=hold)
        def paid(run: Any) -> str:
            return "1"


@pytest.mark.parametrize(
    ("options", "returns"),
    [
        ({}, ReceivedEvent[Any]),
        ({"payload": int}, ReceivedEvent[int]),
        ({"within": DAY, "on_deadline": "hold"}, ReceivedEvent[Any]),
        ({"within": DAY, "on_deadline": "continue"}, ReceivedEvent[Any] | None),
        ({"within": DAY, "on_deadline": "remind"}, ReceivedEvent[Any] | None),
        ({"count": 2, "within": DAY, "on_deadline": "remind"}, list[ReceivedEvent[Any]]),
    ],
)
def test_its_output_says_what_may_come(options: dict[str, Any], returns: Any) -> None:
    assert step_of(**options).returns == returns


# --- the order of the steps -------------------------------------------------------------------


def test_the_way_of_its_deadline_counts_as_a_way_on() -> None:
    flow = waiting(within=DAY, on_deadline="remind")
    flow.check()  # so that `remind` is come to
    assert flow.plan.next["paid"] == ("ship", "remind")
    assert flow.target("paid", "remind") is flow.steps["remind"]
    with pytest.raises(InvalidDefinition, match="'remind' is never reached"):
        waiting(within=DAY, on_deadline="hold").check()


def test_a_way_round_through_a_deadline_needs_a_branch() -> None:
    flow = Workflow("flow")

    @flow.step()
    def ask(run: Any) -> None: ...

    @flow.wait(event="a.b", within=DAY, on_deadline="ask")
    def answered(run: Any) -> str:
        return "1"

    with pytest.raises(InvalidDefinition, match="ask -> answered -> ask would never end"):
        flow.check()


def test_a_loop_through_a_deadline_with_a_branch_is_visited_again() -> None:
    flow = Workflow("flow")

    @flow.step()
    def ask(run: Any) -> None: ...

    @flow.wait(event="a.b", within=DAY, on_deadline="is_patient")
    def answered(run: Any) -> str:
        return "1"

    @flow.step(then=END)
    def thank(run: Any) -> None: ...

    @flow.branch(to=("ask", END), max_visits=3)
    def is_patient(run: Any) -> str:
        return "ask"

    flow.check()
    assert [flow.may_revisit(name) for name in ("answered", "thank")] == [True, False]


def test_a_wait_may_end_the_run_at_its_deadline() -> None:
    flow = Workflow("flow")

    @flow.wait(event="a.b", within=DAY, on_deadline=END)
    def answered(run: Any) -> str:
        return "1"

    @flow.step()
    def thank(run: Any) -> None: ...

    flow.check()
    assert flow.target("answered", END) is None


# --- matching ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shared", "number"),
    [([], 0), ([False], 1), ([True], 1), ([True, True], 2), ([True, False], 0), ([False] * 2, 0)],
)
def test_of_several_waits_all_get_it_or_none(shared: list[bool], number: int) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    waits = [
        OpenWait(UUID(int=place), UUID(int=place), each, now) for place, each in enumerate(shared)
    ]
    assert len(takers(waits)) == number


def test_a_lock_is_of_exactly_one_tenant_type_and_correlation() -> None:
    one, two = UUID(int=1), UUID(int=2)
    keys = [
        lock_key(one, "a", "1"),
        lock_key(two, "a", "1"),
        lock_key(one, "a1", ""),
        lock_key(one, "a", "1 "),
        lock_key(one, "A", "1"),
        lock_key(one, "a", "\u00e9"),
        lock_key(one, "a", "e\u0301"),
    ]
    assert len(set(keys)) == len(keys)
    assert all(-(2**63) <= key < 2**63 for key in keys)
    assert lock_keys(one, ["a", "b", "a"], "1") == sorted(
        {lock_key(one, "a", "1"), lock_key(one, "b", "1")}
    )
