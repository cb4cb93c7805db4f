"""What each kind of step takes, and what is refused where it is written."""

from __future__ import annotations

import functools
import inspect
import re
import uuid
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

import pytest
from pydantic import AwareDatetime, Field

from workflows.core.definitions import END, Child, ChildEnd, Workflow
from workflows.core.errors import InvalidDefinition, UnstorableValue
from workflows.core.intents import Intent
from workflows.core.retry import RetryPolicy
from workflows.core.steps import ChildrenOptions, WriteOptions
from workflows.core.values import from_json, to_json

HERE = re.escape(__file__)
INTENT = Intent("refunds.create", "order ORD-1", {}, "Refund")


def giving(returns: Any, name: str = "work") -> Any:
    """A step function that says that it returns this."""

    def function(run: Any) -> Any:
        pass

    function.__name__ = name
    function.__annotations__["return"] = returns
    return function


def saying_nothing(run):  # type: ignore[no-untyped-def]
    pass


def refused(said: str) -> Any:
    return pytest.raises(InvalidDefinition, match=rf"^{HERE}:\d+: {re.escape(said)}")


# --- step and write ---------------------------------------------------------------------------


def test_what_an_annotation_asks_of_an_output_counts() -> None:
    flow = Workflow("flow")
    flow.step()(giving(Annotated[int, Field(gt=0)]))
    returns = flow.steps["work"].returns
    assert to_json(1, returns, limit=100, what="it") == 1
    with pytest.raises(UnstorableValue, match="greater than 0"):
        to_json(0, returns, limit=100, what="it")


def test_a_step_says_nothing_by_default() -> None:
    flow = Workflow("flow")
    flow.step()(giving(int))
    step = flow.steps["work"]
    assert (step.then, step.atomic, step.sensitive, step.retain) == ("", False, False, None)
    assert (step.to, step.max_visits, step.children, step.branches) == ((), 0, None, ())


def test_a_step_keeps_what_it_was_given() -> None:
    flow, kept = Workflow("flow"), timedelta(days=3)
    flow.step(then=END, atomic=True, sensitive=True, retain=kept)(giving(int))
    step = flow.steps["work"]
    assert (step.then, step.atomic, step.sensitive, step.retain) == (END, True, True, kept)


def test_a_write_keeps_what_it_was_given() -> None:
    flow, kept = Workflow("flow"), timedelta(days=3)
    write = flow.write(
        provider="desk", on_abandon="continue", then=END, sensitive=True, retain=kept
    )
    write(giving(Intent))
    step = flow.steps["work"]
    assert (step.then, step.sensitive, step.retain) == (END, True, kept)
    assert step.write == WriteOptions("desk", "continue")
    assert step.returns is Any  # its receipt, not its intent


def test_a_write_keeps_how_it_is_undone() -> None:
    def undo(run: Any, receipt: Any) -> Intent:
        raise AssertionError((run, receipt))

    flow = Workflow("flow")
    flow.write(provider="desk", undo=undo)(giving(Intent))
    assert flow.steps["work"].write == WriteOptions("desk", undo=undo)


@pytest.mark.parametrize(
    ("undo", "why"),
    [
        ("create_refund", "is a function of the run and the receipt"),
        (giving(Intent), "takes the run and the receipt: too many positional arguments"),
        (lambda run, receipt: (run, receipt), "must be annotated -> Intent"),
    ],
)
def test_an_undo_takes_the_run_and_the_receipt_and_gives_an_intent(undo: Any, why: str) -> None:
    with refused(f"undo= of write step 'work' {why}"):
        Workflow("flow").write(provider="desk", undo=undo)(giving(Intent))


def test_the_next_step_may_be_named_by_its_function() -> None:
    flow = Workflow("flow")
    last = flow.step()(giving(int, "last"))
    flow.step(then=last)(giving(int))
    flow.branch(to=(last, "work", END))(giving(str, "choose"))
    assert flow.steps["work"].then == "last"
    assert flow.steps["choose"].to == ("last", "work", END)


@pytest.mark.parametrize(
    ("then", "shown"), [("", "\"''\""), (3, "'3'"), (RetryPolicy, "'RetryPolicy'")]
)
def test_what_is_no_step_is_refused_as_the_next_one(then: Any, shown: str) -> None:
    flow = Workflow("flow")
    flow.step(then=then)(giving(int))
    with refused(f"step 'work' names {shown} in then=, which workflow 'flow' does not have"):
        flow.check()


@pytest.mark.parametrize("kind", ["step", "write"])
@pytest.mark.parametrize("retain", [timedelta(0), timedelta(seconds=-1), timedelta.max])
def test_an_output_is_kept_for_more_than_nothing(kind: str, retain: timedelta) -> None:
    flow = Workflow("flow")
    decorate = (
        flow.step(retain=retain) if kind == "step" else flow.write(provider="desk", retain=retain)
    )
    with refused(f"retain {retain}: more than nothing, at most "):
        decorate(giving(int if kind == "step" else Intent))


@pytest.mark.parametrize("retries", [0, 3, RetryPolicy(attempts=2)])
def test_a_write_has_no_retries(retries: Any) -> None:
    with refused(
        "write step 'work' has no retries: whether it may be sent again is the contract's matter"
    ):
        Workflow("flow").write(provider="desk", retries=retries)(giving(Intent))


@pytest.mark.parametrize("returns", [Intent, Intent | None, list[Intent], dict[str, list[Intent]]])
def test_a_step_that_gives_an_intent_is_told_to_be_a_write(returns: Any) -> None:
    with refused(
        "step 'work' is annotated with Intent: decorate it with write, so that the ledger"
    ):
        Workflow("flow").step(retries=3)(giving(returns))


@pytest.mark.parametrize("kind", ["step", "branch", "sleep", "children"])
def test_a_write_inside_the_retry_of_a_step_is_refused(kind: str) -> None:
    flow = Workflow("flow")
    written = Workflow("other").write(provider="desk")(giving(Intent))
    decorate = flow.branch(to=END) if kind == "branch" else getattr(flow, kind)()
    with pytest.raises(
        InvalidDefinition,
        match=rf"^{HERE}:\d+: 'work' is a write step, at {HERE}:\d+, and cannot be a step of "
        r"another kind: inside a step's retry it would be sent twice$",
    ):
        decorate(written)


def test_a_write_of_the_same_workflow_is_no_step_as_well() -> None:
    flow = Workflow("flow")
    with pytest.raises(InvalidDefinition, match="is a write step, at"):

        @flow.step(retries=3)
        @flow.write(provider="desk")
        def pay(run: Any) -> Intent:
            return INTENT


def test_a_write_that_is_wrapped_is_still_a_write() -> None:
    written = Workflow("other").write(provider="desk")(giving(Intent))

    @functools.wraps(written)
    def logged(run: Any) -> Any:
        return written(run)

    with pytest.raises(InvalidDefinition, match="is a write step, at"):
        Workflow("flow").step()(logged)


def test_a_write_may_be_a_write_of_two_versions() -> None:
    function = giving(Intent)
    for version in (1, 2):
        flow = Workflow("flow", version=version)
        flow.write(provider="desk")(function)
        assert flow.steps["work"].kind == "write"


class Payer:
    """An author's object whose method is a step."""

    def pay(self, run: Any) -> Intent:
        return run.input  # type: ignore[no-any-return]


def test_a_method_may_be_a_write() -> None:
    flow = Workflow("flow")
    flow.write(provider="desk")(Payer().pay)
    with pytest.raises(InvalidDefinition, match="is a write step, at"):
        Workflow("other").step()(Payer().pay)


# --- branch -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function", [giving(str, "choose"), giving(Literal["a", "$end"], "choose"), saying_nothing]
)
def test_a_branch_says_where_it_may_go(function: Any) -> None:
    flow = Workflow("flow")
    flow.branch(to=("a", "b", END), max_visits=7, timeout=timedelta(seconds=9))(function)
    [step] = flow.steps.values()
    assert (step.kind, step.to, step.max_visits) == ("branch", ("a", "b", END), 7)
    assert (step.returns, step.timeout, step.on_failure) == (str, timedelta(seconds=9), "hold")


def test_a_branch_may_have_one_way() -> None:
    flow = Workflow("flow")
    flow.branch(to=END)(giving(str))
    assert flow.steps["work"].to == (END,)
    assert flow.steps["work"].max_visits == 100


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"to": ()}, "branch 'work' leads nowhere: name in to= where it may go"),
        ({"to": ("a", "b", "a")}, "branch 'work' names 'a' twice in to="),
        ({"to": "a", "max_visits": 0}, "max_visits=0: a whole number from 1"),
        ({"to": "a", "max_visits": 1.5}, "max_visits=1.5: a whole number from 1"),
        ({"to": "a", "max_visits": True}, "max_visits=True: a whole number from 1"),
        ({"to": "a", "on_failure": "hodl"}, "on_failure='hodl': one of ('fail', 'hold')"),
        ({"to": "a", "timeout": timedelta(0)}, "timeout 0:00:00: more than nothing"),
    ],
)
def test_a_branch_that_cannot_work_is_refused(options: dict[str, Any], said: str) -> None:
    with refused(said):
        Workflow("flow").branch(**options)(giving(str))


@pytest.mark.parametrize("returns", [int, None, str | None, list[str]])
def test_a_branch_gives_the_name_of_a_step(returns: Any) -> None:
    with refused(
        "branch 'work' returns the name of the next step: annotate it -> str, "
        "or with a Literal of the names"
    ):
        Workflow("flow").branch(to=END)(giving(returns))


def test_a_branch_says_nothing_else_in_its_literal() -> None:
    with refused("branch 'work' says that it may return 'c', which is not in its to="):
        Workflow("flow").branch(to=("a", "b"))(giving(Literal["a", "c"]))


# --- sleep ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        giving(timedelta),
        giving(datetime),
        giving(AwareDatetime),
        giving(timedelta | datetime),
        saying_nothing,
    ],
)
def test_a_sleep_gives_how_long_or_until_when(function: Any) -> None:
    flow = Workflow("flow")
    flow.sleep(then=END, timeout=timedelta(seconds=9))(function)
    [step] = flow.steps.values()
    assert (step.kind, step.then, step.timeout) == ("sleep", END, timedelta(seconds=9))
    assert step.returns is datetime


@pytest.mark.parametrize("returns", [int, str, None, timedelta | None, list[datetime]])
def test_a_sleep_that_gives_something_else_is_refused(returns: Any) -> None:
    with refused(
        "sleep 'work' returns how long, or until when: annotate it -> timedelta or -> datetime"
    ):
        Workflow("flow").sleep()(giving(returns))


# --- children ---------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [giving(list[Child]), saying_nothing])
def test_children_go_on_when_all_have_ended(function: Any) -> None:
    flow = Workflow("flow")
    flow.children()(function)
    [step] = flow.steps.values()
    assert (step.kind, step.children) == ("children", ChildrenOptions("all", None, "cancel"))
    assert (step.retry, step.on_failure) == (RetryPolicy(attempts=1), "fail")


def test_children_keep_what_they_were_given() -> None:
    flow = Workflow("flow")
    flow.children(
        join="first",
        at_once=5,
        leftover="leave",
        retries=2,
        timeout=timedelta(seconds=9),
        on_failure="hold",
        then=END,
        retain=timedelta(days=1),
    )(giving(list[Child]))
    step = flow.steps["work"]
    assert step.children == ChildrenOptions(join="first", at_once=5, leftover="leave")
    assert (step.retry, step.timeout) == (RetryPolicy(attempts=3), timedelta(seconds=9))
    assert (step.on_failure, step.then, step.retain) == ("hold", END, timedelta(days=1))


def test_what_a_group_gives_is_kept_as_long_as_it_says() -> None:
    flow = Workflow("flow")
    for name in ("a", "b"):
        flow.step()(giving(int, name))
    flow.parallel("a", "b", name="both", retain=timedelta(days=1))
    assert flow.steps["both"].retain == timedelta(days=1)


def test_later_steps_read_the_ends_of_children_typed() -> None:
    flow = Workflow("flow")
    flow.children()(giving(list[Child]))
    returns = flow.steps["work"].returns
    ends = [
        ChildEnd(uuid.uuid4(), "refund", "completed", {"resource": "re_1"}),
        ChildEnd(uuid.uuid4(), "refund", "failed", failure="No such order."),
    ]
    stored = to_json(ends, returns, limit=1000, what="ends")
    assert from_json(stored, returns, what="ends") == ends


def test_a_child_needs_no_more_than_its_workflow() -> None:
    child = Child("refund")
    assert (child.input, child.version, child.labels) == ({}, None, {})
    assert child.input is not Child("refund").input


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"join": "any"}, "join='any': one of ('all', 'first', 'any_failure')"),
        ({"leftover": "kill"}, "leftover='kill': one of ('cancel', 'leave')"),
        ({"at_once": 0}, "at_once=0: a whole number from 1, or None for no limit"),
        ({"at_once": 2.5}, "at_once=2.5: a whole number from 1, or None for no limit"),
        ({"at_once": True}, "at_once=True: a whole number from 1, or None for no limit"),
        ({"on_failure": "hodl"}, "on_failure='hodl': one of ('fail', 'hold')"),
        ({"timeout": timedelta(0)}, "timeout 0:00:00: more than nothing"),
    ],
)
def test_children_that_cannot_work_are_refused(options: dict[str, Any], said: str) -> None:
    with refused(said):
        Workflow("flow").children(**options)(giving(list[Child]))


@pytest.mark.parametrize("returns", [Child, None, list[str], list[Intent], dict[str, Child]])
def test_children_are_given_as_a_list(returns: Any) -> None:
    with refused("children step 'work' returns the runs to start: annotate it -> list[Child]"):
        Workflow("flow").children()(giving(returns))


# --- parallel ---------------------------------------------------------------------------------


def test_a_group_is_a_step_of_its_own() -> None:
    flow, frame = Workflow("flow"), inspect.currentframe()
    pack, bill = (flow.step()(giving(int, name)) for name in ("pack", "bill"))
    assert frame is not None
    line = frame.f_lineno + 1
    flow.parallel(pack, [bill, "mail"], on_failure="hold", then=END)
    group = flow.steps["pack_and_bill"]
    assert (group.kind, group.branches) == ("parallel", (("pack",), ("bill", "mail")))
    assert (group.on_failure, group.then, group.returns) == ("hold", END, list[ChildEnd])
    assert (group.title, group.place) == ("Pack and bill", f"{__file__}:{line}")
    with pytest.raises(AssertionError):
        group.function(None)


def test_a_group_may_have_a_name() -> None:
    flow = Workflow("flow")
    flow.parallel("a", "b", name="both")
    assert list(flow.steps) == ["both"]


@pytest.mark.parametrize("branches", [(), ("a",), (["a", "b"],), ("a", []), ([], [])])
def test_a_group_has_two_branches_at_least(branches: Any) -> None:
    with refused("a parallel group has at least two branches, each with a step"):
        Workflow("flow").parallel(*branches)


def test_a_function_that_is_no_step_yet_is_refused_in_a_group() -> None:
    flow = Workflow("flow")
    a = flow.step()(giving(int, "a"))
    for branch in (giving(int, "b"), giving(int, "a"), ["a", giving(int, "b")]):
        with pytest.raises(
            InvalidDefinition,
            match=rf"^{HERE}:\d+: '[ab]' is no step of workflow 'flow' yet: decorate it first, "
            "or give its name$",
        ):
            flow.parallel(a, branch)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"on_failure": "hodl"}, "on_failure='hodl': one of ('fail', 'hold')"),
        ({"name": "Both"}, "step name 'Both': use lower case and _, 63 letters at most"),
        ({"name": "a"}, f"step 'a' is already defined at {__file__}:"),
    ],
)
def test_a_group_that_cannot_work_is_refused(options: dict[str, Any], said: str) -> None:
    flow = Workflow("flow")
    flow.step()(giving(int, "a"))
    with refused(said):
        flow.parallel("a", "b", **options)


def test_a_group_whose_branches_make_too_long_a_name_is_told_to_have_its_own() -> None:
    with pytest.raises(InvalidDefinition, match=r"at most; give the group a name=$"):
        Workflow("flow").parallel("a" * 40, "b" * 40)
