"""What an author writes: what cannot work is refused where it is written, with file and line."""

from __future__ import annotations

import decimal
import inspect
import re
from datetime import timedelta
from typing import Any

import pytest

from workflows.core.definitions import Registry, Workflow, workflows_in
from workflows.core.errors import InvalidDefinition, UnknownWorkflow
from workflows.core.intents import Intent
from workflows.core.retry import RetryPolicy

HERE = re.escape(__file__)


def nothing(run: Any) -> None:
    pass


def named(name: str) -> Any:
    """A step function of that name."""

    def function(run: Any) -> None:
        pass

    function.__name__ = name
    return function


def triage(version: int = 1) -> Workflow:
    """A workflow of three steps, the second a write."""
    workflow = Workflow("desk.triage", version=version)

    @workflow.step(retries=3)
    def read(run: Any) -> str:
        """Read the ticket

        And more about that.
        """
        return "T-1"

    @workflow.write(provider="desk", on_abandon="continue")
    def note_result(run: Any) -> Intent:
        return Intent("comments.create", "ticket T-1", {}, "Comment")

    @workflow.step()
    def tell(run: Any) -> None:
        pass

    return workflow


# --- workflows --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["Refund", "refund-2", "", ".refund", "refund.", "2nd", "a b", "é"]
)
def test_a_workflow_name_of_other_letters_is_refused_with_its_place(name: str) -> None:
    with pytest.raises(InvalidDefinition, match=rf"^{HERE}:\d+: workflow name {name!r}"):
        Workflow(name)


@pytest.mark.parametrize("name", ["refund", "refund_2", "payments.refund", "a.b2.c_d"])
def test_a_workflow_name_has_parts_with_dots(name: str) -> None:
    assert Workflow(name).name == name


def test_the_place_of_a_workflow_is_the_line_that_makes_it() -> None:
    frame = inspect.currentframe()
    assert frame is not None
    line = frame.f_lineno + 2
    with pytest.raises(InvalidDefinition, match=rf"^{HERE}:{line}: "):
        Workflow("Not a name")


@pytest.mark.parametrize("version", [0, -1])
def test_versions_start_at_one(version: int) -> None:
    with pytest.raises(InvalidDefinition, match=rf"^{HERE}:\d+: version {version}: start at 1"):
        Workflow("refund", version=version)


def test_a_workflow_name_that_its_column_cannot_hold_is_refused() -> None:
    with pytest.raises(InvalidDefinition):
        Workflow("a" * 201)


@pytest.mark.parametrize("retain", [timedelta(0), timedelta(days=-1), timedelta.max])
def test_outputs_of_a_workflow_are_kept_for_more_than_nothing(retain: timedelta) -> None:
    with pytest.raises(InvalidDefinition, match=rf"^{HERE}:\d+: retain .*: more than nothing"):
        Workflow("refund", retain=retain)


def test_a_workflow_says_how_long_its_outputs_are_kept() -> None:
    assert Workflow("refund").retain is None
    assert Workflow("refund", retain=timedelta(days=30)).retain == timedelta(days=30)


# --- steps ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Load", "<lambda>", "load2_É", "l" * 64, "_load"])
def test_a_step_name_of_other_letters_is_refused_with_its_place(name: str) -> None:
    with pytest.raises(InvalidDefinition, match=rf"^{HERE}:\d+: step name {re.escape(repr(name))}"):
        Workflow("refund").step()(named(name))


def test_two_steps_of_one_name_are_refused_and_both_places_are_named() -> None:
    workflow = Workflow("refund")
    workflow.step()(named("load"))
    with pytest.raises(
        InvalidDefinition,
        match=rf"^{HERE}:\d+: step 'load' is already defined at {HERE}:\d+$",
    ):
        workflow.step()(named("load"))


def test_the_place_of_a_step_is_the_line_of_its_function() -> None:
    workflow = Workflow("refund")
    workflow.step()(nothing)
    line = inspect.getsourcelines(nothing)[1]
    assert workflow.steps["nothing"].place == f"{__file__}:{line}"


def test_a_write_step_must_say_that_it_returns_an_intent() -> None:
    def as_dict(run: Any) -> dict[str, Any]:
        return {}

    def unannotated(run):  # type: ignore[no-untyped-def]
        return Intent("a", "b", {}, "c")

    for function in (as_dict, unannotated, nothing):
        with pytest.raises(
            InvalidDefinition,
            match=rf"^{HERE}:\d+: write step '{function.__name__}' must be annotated -> Intent",
        ):
            Workflow("refund").write(provider="payments")(function)


def test_an_annotation_that_nobody_knows_is_refused_with_its_place() -> None:
    def load(run: Any) -> Ordre:  # type: ignore[name-defined]  # noqa: F821
        pass

    with pytest.raises(InvalidDefinition, match=rf"^{HERE}:\d+: .*'Ordre' is not defined"):
        Workflow("refund").step()(load)


def test_an_annotation_that_its_module_does_not_have_is_refused_with_its_place() -> None:
    def load(run: Any) -> decimal.Decimall:  # type: ignore[name-defined]
        pass

    with pytest.raises(InvalidDefinition, match=rf"^{HERE}:\d+: .*Decimall"):
        Workflow("refund").step()(load)


def test_an_annotation_that_is_no_expression_is_refused_with_its_place() -> None:
    def load(run: Any) -> Any:
        pass

    load.__annotations__["return"] = "int |"
    with pytest.raises(InvalidDefinition, match=rf"^{HERE}:\d+: "):
        Workflow("refund").step()(load)


class Unstorable:
    """A class that no schema can be made for."""


def test_an_annotation_that_cannot_be_stored_is_refused_where_it_is_written() -> None:
    def load(run: Any) -> Unstorable:
        return Unstorable()

    with pytest.raises(InvalidDefinition, match=rf"^{HERE}:\d+: .*Unstorable"):
        Workflow("refund").step()(load)


@pytest.mark.parametrize("choice", ["on_failure", "on_abandon"])
def test_a_misspelt_choice_is_refused(choice: str) -> None:
    def create(run: Any) -> Intent:
        return Intent("a", "b", {}, "c")

    with pytest.raises(InvalidDefinition):
        Workflow("refund").write(provider="payments", **{choice: "hodl"})(create)


@pytest.mark.parametrize("timeout", [timedelta(0), timedelta(seconds=-1), timedelta.max])
def test_a_time_that_no_step_can_have_is_refused(timeout: timedelta) -> None:
    with pytest.raises(InvalidDefinition):
        Workflow("refund").step(timeout=timeout)(nothing)


def test_retries_are_the_tries_after_the_first() -> None:
    workflow = triage()
    assert workflow.steps["read"].retry == RetryPolicy(attempts=4)
    assert workflow.steps["tell"].retry == RetryPolicy(attempts=1)


def test_a_policy_of_its_own_is_taken_as_it_is() -> None:
    policy = RetryPolicy(attempts=7, first_delay=timedelta(minutes=1), jitter=0)
    workflow = Workflow("refund")
    workflow.step(retries=policy)(nothing)
    assert workflow.steps["nothing"].retry is policy


def test_a_write_step_is_never_retried_by_itself() -> None:
    assert triage().steps["note_result"].retry == RetryPolicy(attempts=1)


# --- the graph as data ------------------------------------------------------------------------


def test_the_graph_is_data_in_the_order_written() -> None:
    assert triage().graph == [
        {"name": "read", "kind": "step", "title": "Read the ticket", "next": ["note_result"]},
        {"name": "note_result", "kind": "write", "title": "Note result", "next": ["tell"]},
        {"name": "tell", "kind": "step", "title": "Tell", "next": []},
    ]


def test_after_the_last_step_comes_none() -> None:
    workflow = triage()
    assert workflow.first.name == "read"
    following = workflow.after("note_result")
    assert following is not None
    assert following.name == "tell"
    assert workflow.after("tell") is None


# --- the registry -----------------------------------------------------------------------------


def test_a_workflow_without_a_step_is_refused() -> None:
    with pytest.raises(InvalidDefinition, match=rf"^{HERE}:\d+: workflow 'empty' has no step"):
        Registry().add(Workflow("empty"))


def test_one_version_twice_is_refused_and_both_places_are_named() -> None:
    known = Registry()
    known.add(triage())
    with pytest.raises(
        InvalidDefinition,
        match=rf"^{HERE}:\d+: desk.triage version 1 is already defined at {HERE}:\d+$",
    ):
        known.add(triage())


def test_the_same_workflow_may_be_met_twice() -> None:
    known, workflow = Registry(), triage()
    known.add(workflow)
    known.add(workflow)
    assert known.pairs() == [("desk.triage", 1)]


def test_the_latest_version_is_the_greatest_number() -> None:
    known = Registry()
    for version in (2, 10, 9):
        known.add(triage(version))
    assert known.latest("desk.triage").version == 10
    assert known.get("desk.triage", 2).version == 2
    assert known.has("desk.triage", 9)
    assert not known.has("desk.triage", 1)


def test_an_unknown_workflow_is_refused_and_what_is_known_is_named() -> None:
    known = Registry()
    with pytest.raises(UnknownWorkflow, match="known: none"):
        known.latest("refund")
    known.add(triage(3))
    with pytest.raises(UnknownWorkflow, match=r"no workflow 'refund' here; known: desk\.triage v3"):
        known.latest("refund")
    with pytest.raises(UnknownWorkflow, match=r"'desk\.triage' version 2 here; known: desk"):
        known.get("desk.triage", 2)


def test_what_is_claimable_is_every_step_in_four_lists() -> None:
    known = Registry()
    assert known.claimable() == ([], [], [], [])
    slow = Workflow("slow", version=2)
    slow.step(timeout=timedelta(minutes=1.5))(nothing)
    known.add(slow)
    known.add(triage())
    assert known.claimable() == (
        ["slow", "desk.triage", "desk.triage", "desk.triage"],
        [2, 1, 1, 1],
        ["nothing", "read", "note_result", "tell"],
        [90.0, 300.0, 300.0, 300.0],
    )


def test_what_is_known_is_worked_out_once_for_each_that_is_added() -> None:
    known, workflow = Registry(), triage()
    known.add(workflow)
    steps, pairs, claimable = known.steps(), known.pairs(), known.claimable()
    assert known.steps() is steps
    assert known.pairs() is pairs
    assert known.claimable() is claimable
    known.add(triage(2))
    assert [(of.version, step.name) for of, step in known.steps()] == [
        (version, name) for version in (1, 2) for name in ("read", "note_result", "tell")
    ]
    assert known.pairs() == [("desk.triage", 1), ("desk.triage", 2)]
    assert len(known.claimable()[0]) == 6


def test_a_workflow_that_was_given_a_step_is_checked_when_it_is_met_again() -> None:
    known, workflow = Registry(), triage()
    known.add(workflow)
    workflow.step(then="nowhere")(nothing)
    with pytest.raises(InvalidDefinition, match="names 'nowhere' in then="):
        known.add(workflow)


def test_the_workflows_of_a_module_are_found_once_each() -> None:
    workflow, other = triage(1), triage(2)
    names = {"a": workflow, "b": other, "same": workflow, "number": 1, "kind": Workflow}
    assert workflows_in(names) == [workflow, other]
