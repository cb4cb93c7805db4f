"""What becomes of a run under a later version: where it would stand, or why it stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from workflows.core.definitions import END, Registry, Track, Workflow
from workflows.core.migrating import convert, place
from workflows.core.standing import (
    Carried,
    Converted,
    KnownOperation,
    Moves,
    NewOutput,
    Reason,
    Standing,
    Stays,
)
from workflows.core.states import RunState


@dataclass
class Order:
    number: str
    amount: int


@dataclass
class Asked:
    order: str
    reason: str


def second_version(**declared: Any) -> Workflow:
    """Version 2: load_order, pay, check, settled, and `again` that may lead back to `check`, then
    the group of `pack` and [`bill`, `post`], and `tell`."""
    flow = Workflow("refund", version=2, input=Asked)

    @flow.step()
    def load_order(run: Any) -> Order: ...

    @flow.step()
    def pay(run: Any) -> Any: ...

    @flow.step()
    def check(run: Any) -> Any: ...

    @flow.step()
    def settled(run: Any) -> Any: ...

    @flow.branch(to=("check", "pack_and_bill"))
    def again(run: Any) -> str: ...

    @flow.step()
    def pack(run: Any) -> Any: ...

    @flow.step()
    def bill(run: Any) -> Any: ...

    @flow.step()
    def post(run: Any) -> Any: ...

    flow.parallel(pack, [bill, post])

    @flow.step(then=END)
    def tell(run: Any) -> Any: ...

    flow.migrates(from_version=1, **declared)
    Registry().add(flow)
    return flow


def standing(step: str = "settled", **facts: Any) -> Standing:
    """A ready run of version 1 that has passed `load` and `pay`."""
    given: dict[str, Any] = {
        "workflow": "refund",
        "version": 1,
        "state": RunState.READY,
        "visit": 1,
        "passed": {"load": 1, "pay": 1},
    }
    return Standing(step=step, **(given | facts))


def operation(*, step: str = "settled", visit: int = 1, settled: bool = False) -> KnownOperation:
    return KnownOperation(step, visit, "Refund order 7", settled)


def stays(answer: Moves | Stays | Converted) -> Stays:
    assert isinstance(answer, Stays), answer
    return answer


def moves(answer: Moves | Stays) -> Moves:
    assert isinstance(answer, Moves), answer
    return answer


# --- where it would stand ---------------------------------------------------------------------


def test_a_ready_run_goes_on_where_it_stands_with_its_outputs_where_they_belong() -> None:
    into = second_version(steps={"load": "load_order"})
    assert place(standing(), into) == Moves(
        "settled",
        1,
        RunState.READY,
        (Carried("load", "load_order", visit=1), Carried("pay", "pay")),
    )


def test_a_renamed_position_is_come_to_for_the_first_time() -> None:
    into = second_version(steps={"asked": "settled"})
    answer = moves(place(standing("asked", visit=3), into))
    assert (answer.step, answer.visit) == ("settled", 1)


@pytest.mark.parametrize(
    ("facts", "after"),
    [
        ({"state": RunState.READY}, RunState.READY),
        ({"state": RunState.READY, "reason": "retry"}, RunState.READY),
        ({"state": RunState.WAITING, "reason": "sleeping"}, RunState.WAITING),
        ({"state": RunState.WAITING, "reason": "turn"}, RunState.WAITING),
        ({"state": RunState.HELD, "reason": "step_missing"}, RunState.READY),
        ({"state": RunState.HELD, "reason": "step_failed"}, RunState.HELD),
        ({"state": RunState.RUNNING}, RunState.READY),  # its lease has run out
    ],
)
def test_it_is_afterwards_what_it_was_unless_a_worker_can_take_it(
    facts: dict[str, Any], after: RunState
) -> None:
    assert moves(place(standing(**facts), second_version())).state is after


def test_one_whose_step_is_missing_goes_on_at_the_step_in_its_place() -> None:
    held = standing("asked", state=RunState.HELD, reason="step_missing")
    answer = moves(place(held, second_version(steps={"asked": "settled"})))
    assert (answer.step, answer.state) == ("settled", RunState.READY)


# A loop: settled and again lead back to check.
LOOPED = {"load": 1, "pay": 1, "check": 2, "settled": 2, "again": 2}


@pytest.mark.parametrize(
    ("declared", "facts", "visit"),
    [
        ({}, {"step": "check", "visit": 3}, 3),
        # Its own output is written anew as the next visit, and the run comes after that.
        ({"outputs": {"check": str}}, {"step": "check", "visit": 3}, 4),
        ({"steps": {"look": "check"}}, {"step": "look", "visit": 3}, 3),
        (
            {"steps": {"look": "check"}},
            {"step": "look", "visit": 3, "passed": {"look": 2, "pay": 1}},
            2,
        ),
    ],
)
def test_on_a_loop_it_comes_with_the_next_visit_that_is_free(
    declared: dict[str, Any], facts: dict[str, Any], visit: int
) -> None:
    answer = moves(place(standing(**({"passed": LOOPED} | facts)), second_version(**declared)))
    assert (answer.step, answer.visit) == ("check", visit)


def test_a_changed_output_is_a_later_visit_of_its_step() -> None:
    into = second_version(outputs={"pay": str, "load": None})
    assert moves(place(standing(passed={"pay": 4, "load": 1}), into)).carried == (
        Carried("pay", "pay", visit=5),
    )


def test_outputs_of_versions_before_the_present_one_are_left_where_they_are() -> None:
    """Renamed from `pay` by the version before, and renamed back by this one."""
    into = second_version(steps={"refund": "pay"})
    passed = {"pay": 1, "refund": 1}
    known = standing(passed=passed, known=frozenset({"refund", "settled"}))
    assert moves(place(known, into)).carried == (Carried("refund", "pay", visit=2),)
    assert stays(place(standing(passed=passed), into)).reason is Reason.OUTPUT_TWICE
    said = second_version(steps={"refund": "pay"}, outputs={"pay": None})
    assert moves(place(standing(passed=passed), said)).carried == (Carried("refund", "pay", 2),)


# --- why it stays -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "facts", "message", "helps"),
    [
        (
            Reason.NO_MIGRATION,
            {"version": 0},
            "Version 2 says nothing of runs of version 0.",
            "Declare migrates(from_version=0, …) in version 2, or have the versions between here "
            "that lead to it; or keep a worker that has version "
            "0.",
        ),
        (
            Reason.STEP_GONE,
            {"step": "ask_boss"},
            "Version 2 has no step 'ask_boss', and its migration from version 1 does not say which "
            "one takes its place.",
            "Add steps={'ask_boss': …} to migrates(from_version=1), or keep a worker that has "
            "version 1.",
        ),
        (
            Reason.CANCELLING,
            {"cancelling": True},
            "Its end was asked for.",
            "It ends by itself, once what it has open on other systems is settled.",
        ),
        (
            Reason.AT_WORK,
            {"state": RunState.RUNNING, "leased": True},
            "A worker is at work on it.",
            "Try again when its step is done; a pause of the workflow stops it there.",
        ),
        (
            Reason.IN_GROUP,
            {"group": "pack_and_bill"},
            "It is a branch of the parallel group 'pack_and_bill' of another run.",
            "Workers that have version 1 take the group to its end; the run that waits for it "
            "moves then.",
        ),
        (
            Reason.UNSETTLED,
            {"operations": (operation(step="pay"),)},
            "A write of its is not settled.",
            "Let it be settled first: by a worker that has version 1, or by the decision that it "
            "waits for.",
        ),
        (
            Reason.CHILDREN,
            {"state": RunState.WAITING, "reason": "children", "has_children": True},
            "It waits at step 'settled' for runs that it has started.",
            "Let them end: a worker that has version 1 takes it past that step.",
        ),
        (
            Reason.INTO_GROUP,
            {"step": "bill", "passed": {}},
            "Step 'bill' is in a branch of group 'pack_and_bill' in version 2.",
            "Name the group itself: steps={'bill': 'pack_and_bill'}.",
        ),
        (
            Reason.WAITING,
            {"state": RunState.WAITING, "reason": "event"},
            "It waits at step 'settled' for something that only this step knows.",
            "Let that come first; it moves then.",
        ),
        (
            Reason.OUTPUT_INTO_GROUP,
            {"step": "tell", "passed": {"post": 1}},
            "The output of 'post' would be that of 'post', which is in a branch of group "
            "'pack_and_bill' in version 2.",
            "Say outputs={'post': None} if nothing asks for it, or another step.",
        ),
        (
            Reason.GROUP_PASSED,
            {"step": "tell", "beside": frozenset({(Track("bill_and_pack", 0), "bill")})},
            "It has passed the parallel group 'bill_and_pack', whose branch keeps the output of "
            "'bill' as it is.",
            "Leave 'bill' in its branch in version 2, or say outputs={'bill': None} if nothing "
            "asks for it.",
        ),
        (
            Reason.PASSED,
            {"step": "load_order", "passed": {"pay": 1}},
            "From 'load_order' on, version 2 comes to step 'pay', and the run has the output of a "
            "step of that name already: nothing that was done is done again.",
            "Let steps= name a step behind it for 'load_order', or give 'pay' a new name.",
        ),
    ],
)
def test_each_reason_says_what_it_is_and_what_helps(
    reason: Reason, facts: dict[str, Any], message: str, helps: str
) -> None:
    answer = stays(place(standing(**facts), second_version()))
    assert (answer.reason, answer.message, answer.helps) == (reason, message, helps)


def test_what_a_run_is_busy_with_comes_before_a_step_that_is_gone() -> None:
    busy = standing("ask_boss", operations=(operation(step="ask_boss"),))
    answer = stays(place(busy, second_version()))
    assert (answer.reason, answer.about) == (Reason.UNSETTLED, "Refund order 7")


def test_a_held_run_stays_where_its_step_has_another_name() -> None:
    held = standing("asked", state=RunState.HELD, reason="step_failed")
    answer = stays(place(held, second_version(steps={"asked": "settled"})))
    assert answer.reason is Reason.HELD
    assert answer.message == (
        "It is held for a decision at step 'asked', which version 2 calls 'settled'."
    )


def test_a_step_gets_one_output() -> None:
    into = second_version(steps={"load": "pay"})
    answer = stays(place(standing(), into))
    assert answer.reason is Reason.OUTPUT_TWICE
    assert answer.message == "Step 'pay' would get the outputs of 'load' and of 'pay'."


@pytest.mark.parametrize(
    ("declared", "facts", "again"),
    [
        # The position itself is that of a step whose work is done.
        ({"steps": {"settled": "pay"}}, {}, "pay"),
        (
            {"steps": {"settled": "pay", "refund": "pay"}, "outputs": {"settled": None}},
            {"passed": {"refund": 1}},
            "pay",
        ),
        # It lies ahead, under its old name or a new one.
        ({"steps": {"asked": "load_order"}}, {"step": "asked"}, "pay"),
        (
            {"steps": {"asked": "load_order", "refund": "pay"}},
            {"step": "asked", "passed": {"refund": 1}},
            "pay",
        ),
        # Nobody gets its output, and its name is there all the same.
        (
            {"steps": {"asked": "load_order"}, "outputs": {"pay": None}},
            {"step": "asked", "passed": {"pay": 1}},
            "pay",
        ),
        # In a branch of a group it would be another run's, and done again.
        ({"outputs": {"post": None}}, {"passed": {"post": 1}}, "post"),
    ],
)
def test_nothing_that_was_done_is_done_again(
    declared: dict[str, Any], facts: dict[str, Any], again: str
) -> None:
    answer = stays(place(standing(**facts), second_version(**declared)))
    assert answer.reason is Reason.PASSED
    assert f"comes to step {again!r}" in answer.message


def test_steps_of_a_loop_may_be_come_to_again() -> None:
    assert moves(place(standing("settled", visit=3, passed=LOOPED), second_version())).visit == 3


def test_a_group_that_was_passed_and_is_as_it_was_does_not_bind() -> None:
    there = frozenset({(Track("pack_and_bill", 0), "pack"), (Track("pack_and_bill", 1), "post")})
    into = second_version()
    assert moves(place(standing("tell", beside=there), into)).step == "tell"
    for declared in ({"outputs": {"post": str}}, {"steps": {"post": "tell"}}):
        changed = second_version(**declared)
        assert stays(place(standing("tell", beside=there), changed)).reason is Reason.GROUP_PASSED


@pytest.mark.parametrize(
    ("declared", "step", "settled", "reason"),
    [
        ({}, "settled", False, Reason.UNSETTLED),
        ({"steps": {"asked": "settled"}}, "asked", False, Reason.UNSETTLED),
        ({}, "settled", True, None),  # the step finds it under the same name and visit
        ({"steps": {"asked": "settled"}}, "asked", True, Reason.OPERATION_KEPT),
    ],
)
def test_a_write_of_the_present_step_is_never_opened_twice(
    declared: dict[str, Any], step: str, settled: bool, reason: Reason | None
) -> None:
    facts = standing(step, operations=(operation(step=step, settled=settled),))
    answer = place(facts, second_version(**declared))
    assert (answer.reason if isinstance(answer, Stays) else None) is reason


# --- its outputs and its input ----------------------------------------------------------------

ASKED = {"order": "7", "reason": "late"}
ORDER = {"number": "7", "amount": 125}


def change(
    values: dict[str, Any], given: Any = ASKED, limit: int = 1000, **declared: Any
) -> Converted | Stays:
    into = second_version(**declared)
    answer = moves(place(standing(passed=dict.fromkeys(values, 1)), into))
    return convert(
        answer, into.migrations[1], into, values, given, output_limit=limit, input_limit=limit
    )


def test_outputs_and_input_are_made_those_of_the_later_version() -> None:
    assert change(
        {"load": {"number": "7"}, "pay": {"receipt": "r"}},
        {"order": "7"},
        steps={"load": "load_order"},
        outputs={"load": lambda old: old | {"amount": 125}},
        input=lambda old: old | {"reason": "late"},
    ) == Converted((NewOutput("load", "load_order", 1, ORDER),), ASKED)


def test_what_stays_as_it_is_is_written_nowhere() -> None:
    assert change({"load_order": ORDER}) == Converted((), ASKED)


def raising(old: Any) -> Any:
    raise KeyError("amount")


@pytest.mark.parametrize(
    ("values", "given", "declared", "reason", "message"),
    [
        (
            {"load_order": {"number": "7"}},
            ASKED,
            {},
            Reason.OUTPUT_UNFIT,
            "The output of 'load_order' does not fit step 'load_order' of version 2: at amount: "
            "Field required.",
        ),
        (
            {"load": ORDER},
            ASKED,
            {"steps": {"load": "load_order"}, "outputs": {"load": lambda _: {"number": object()}}},
            Reason.OUTPUT_UNFIT,
            "The output of 'load' does not fit step 'load_order' of version 2: at $.number: object "
            "has no JSON form; declare its type.",
        ),
        (
            {"pay": "x"},
            ASKED,
            {"outputs": {"pay": lambda _: "x" * 2000}},
            Reason.OUTPUT_UNFIT,
            "The output of 'pay' does not fit step 'pay' of version 2: 2,002 bytes, and the limit "
            "is 1,000.",
        ),
        (
            {"pay": {}},
            ASKED,
            {"outputs": {"pay": raising}},
            Reason.CHANGE_FAILED,
            "The function that changes the output of 'pay' raised KeyError.",
        ),
        (
            {},
            {"order": "7"},
            {},
            Reason.INPUT_UNFIT,
            "Its input does not fit version 2: at reason: Field required.",
        ),
        (
            {},
            ASKED,
            {"input": raising},
            Reason.CHANGE_FAILED,
            "The function that changes the input raised KeyError.",
        ),
    ],
)
def test_what_does_not_fit_is_said_before_anything_is_written(
    values: dict[str, Any], given: Any, declared: dict[str, Any], reason: Reason, message: str
) -> None:
    answer = stays(change(values, given, **declared))
    assert (answer.reason, answer.message) == (reason, message)
    assert answer.helps


def test_what_a_function_says_of_a_value_is_kept_apart_from_the_sentence() -> None:
    answer = stays(change({"pay": {}}, outputs={"pay": raising}))
    assert (answer.about, "amount" in answer.message + answer.helps) == (
        "KeyError: 'amount'",
        False,
    )


def test_an_output_that_goes_nowhere_need_not_fit() -> None:
    assert change({"load_order": None}, outputs={"load_order": None}) == Converted((), ASKED)
