"""The order of the steps: what follows what, and which orders are refused, with file and line."""

from __future__ import annotations

from typing import Any

import pytest

from workflows.core.definitions import END, Registry, Step, Track, Workflow
from workflows.core.errors import InvalidDefinition, UsageError

# A step by its name; by its name and what it leads to: one name (then=) or several (a branch);
# or a group called "group", by its branches.
Line = str | tuple[str, str | tuple[str, ...]] | list[Any]


def add(flow: Workflow, name: str, leads: str | tuple[str, ...] | None = None) -> None:
    """Add a step that seems to stand on a line of its own in this file."""

    def function(run: Any) -> Any:
        pass

    function.__name__ = name
    function.__code__ = function.__code__.replace(co_firstlineno=1001 + len(flow.steps))
    if isinstance(leads, tuple):
        flow.branch(to=leads)(function)
    else:
        flow.step(then=leads)(function)


def made(*lines: Line) -> Workflow:
    """The workflow "flow" of these steps, in this order."""
    flow = Workflow("flow")
    for line in lines:
        match line:
            case str(name):
                add(flow, name)
            case (str(name), leads) if isinstance(line, tuple):
                add(flow, name, leads)
            case _:
                flow.parallel(*line, name="group")
    return flow


def named(step: Step | None) -> str | None:
    return step and step.name


# It asks until something is there, or gives up; then two branches side by side, and an end.
POLLING = made(
    "ask",
    ("is_there", ("rest", "group", END)),
    ("rest", "ask"),
    "pack",
    "weigh",
    "bill",
    [["pack", "weigh"], "bill"],
    "notify",
)


# --- what follows -----------------------------------------------------------------------------


def test_the_graph_names_what_can_follow_each_step() -> None:
    assert {step["name"]: step["next"] for step in POLLING.graph} == {
        "ask": ["is_there"],
        "is_there": ["rest", "group"],
        "rest": ["ask"],
        "pack": ["weigh"],
        "weigh": [],
        "bill": [],
        "group": ["notify"],
        "notify": [],
    }


def test_a_group_in_the_graph_names_its_branches() -> None:
    [group] = [step for step in POLLING.graph if "branches" in step]
    assert group == {
        "name": "group",
        "kind": "parallel",
        "title": "Group",
        "next": ["notify"],
        "branches": [["pack", "weigh"], ["bill"]],
    }


@pytest.mark.parametrize(
    ("step", "follower"),
    [
        ("ask", "is_there"),
        ("rest", "ask"),  # then=
        ("pack", "weigh"),  # within its branch
        ("weigh", None),  # the end of its branch
        ("bill", None),  # not the next in written order, which is the group
        ("group", "notify"),
        ("notify", None),
    ],
)
def test_a_step_is_followed_by_the_next_of_its_line(step: str, follower: str | None) -> None:
    assert named(POLLING.after(step)) == follower


def test_a_step_whose_then_is_the_end_is_followed_by_none() -> None:
    flow = made(("choose", ("short", "long")), ("short", END), "long")
    assert flow.after("short") is None


@pytest.mark.parametrize(("then", "follower"), [("first", "first"), (END, None)])
def test_a_group_goes_on_at_its_then(then: str, follower: str | None) -> None:
    flow = made("first", ("choose", ("both", END)), "a", "b")
    flow.parallel("a", "b", name="both", then=then)
    assert named(flow.after("both")) == follower


@pytest.mark.parametrize("step", ["is_there", "nowhere"])
def test_nothing_follows_a_branch_or_an_unknown_step_by_itself(step: str) -> None:
    with pytest.raises(UsageError, match=f"workflow flow: '{step}' is a branch or no step"):
        POLLING.after(step)


def test_a_branch_leads_where_it_has_chosen() -> None:
    assert named(POLLING.target("is_there", "rest")) == "rest"
    assert named(POLLING.target("is_there", "group")) == "group"
    assert POLLING.target("is_there", END) is None


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ("notify", "'notify'"),
        ("", "no name of a step but str"),
        (None, "no name of a step but NoneType"),
        (["rest"], "no name of a step but list"),
        ("Jane Doe, 1 Main Street", "no name of a step but str"),  # maybe private
    ],
)
def test_a_branch_that_chose_something_else_is_told_what_it_may_choose(
    chosen: object, said: str
) -> None:
    with pytest.raises(UsageError) as raised:
        POLLING.target("is_there", chosen)
    assert str(raised.value) == (
        f"branch 'is_there' returned {said}; it may return 'rest' or 'group' or END"
    )


def test_only_a_branch_chooses() -> None:
    with pytest.raises(UsageError, match="'ask' is no branch"):
        POLLING.target("ask", "is_there")


@pytest.mark.parametrize(
    ("step", "track"),
    [
        ("ask", None),
        ("group", None),
        ("pack", Track("group", 0)),
        ("weigh", Track("group", 0)),
        ("bill", Track("group", 1)),
    ],
)
def test_the_steps_of_a_group_are_in_its_branches(step: str, track: Track | None) -> None:
    assert POLLING.track_of(step) == track


@pytest.mark.parametrize(
    ("flow", "loops"),
    [
        (made("a", "b"), []),
        (POLLING, ["ask", "is_there", "rest"]),
        (made(("again", ("again", END))), ["again"]),
        # A loop inside a branch is its own matter.
        (made("a", ("again", ("a", END)), "b", [["a", "again"], "b"]), ["a", "again"]),
        # A group that is come to again has its branches begin again, each as a run of its own.
        (made("a", "b", ["a", "b"], ("more", ("group", END))), ["group", "more"]),
    ],
)
def test_steps_on_a_loop_may_be_visited_again(flow: Workflow, loops: list[str]) -> None:
    assert [step for step in flow.steps if flow.may_revisit(step)] == loops


@pytest.mark.parametrize(
    ("step", "later"),
    [
        ("ask", ["is_there", "rest", "pack", "weigh", "bill", "group", "notify"]),
        ("pack", ["weigh", "notify"]),
        ("bill", ["notify"]),
        ("notify", []),
    ],
)
def test_the_later_steps_are_those_that_may_still_come(step: str, later: list[str]) -> None:
    assert [other.name for other in POLLING.later(step)] == later


def test_the_first_step_is_the_first_of_the_main_line() -> None:
    assert made("a", "b", ["a", "b"], "c").first.name == "group"


def test_a_group_may_name_steps_that_are_written_later() -> None:
    flow = made(["a", "b"], "c", "a", "b")
    assert named(flow.after("group")) == "c"
    assert flow.track_of("a") == Track("group", 0)


def test_a_step_that_is_added_later_takes_its_place() -> None:
    flow = made("a")
    assert flow.after("a") is None
    add(flow, "b")
    assert named(flow.after("a")) == "b"


def test_a_branch_of_a_group_may_go_on_and_back_within_itself() -> None:
    flow = made(("a", "c"), ("b", ("a", END)), ("c", "b"), "d", [["a", "b", "c"], "d"])
    assert named(flow.after("a")) == "c"
    assert named(flow.after("c")) == "b"
    assert flow.target("b", END) is None


# --- what is refused --------------------------------------------------------------------------

# Each: the steps, the one whose place is named, and what is said.
UNKNOWN_TARGETS: list[tuple[list[Line], str, str]] = [
    ([("a", "b")], "a", "step 'a' names 'b' in then=, which workflow 'flow' does not have"),
    (
        [("a", (END, "b"))],
        "a",
        "step 'a' names 'b' in to=, which workflow 'flow' does not have",
    ),
]
OTHER_LINES: list[tuple[list[Line], str, str]] = [
    (
        [("start", "a"), "a", "b", ["a", "b"]],
        "start",
        "step 'start' names 'a' in then=, which is inside group 'group': name the group itself",
    ),
    (
        [("start", ("a", "group")), "a", "b", ["a", "b"]],
        "start",
        "step 'start' names 'a' in to=, which is inside group 'group': name the group itself",
    ),
    (
        [("a", "last"), "b", ["a", "b"], "last"],
        "a",
        "step 'a' names 'last' in then=, which is not in its branch of group 'group': a branch "
        "goes on at its own steps, or ends with END",
    ),
    (
        [("a", "b"), "b", ["a", "b"]],
        "a",
        "step 'a' names 'b' in then=, which is not in its branch of group 'group': a branch "
        "goes on at its own steps, or ends with END",
    ),
    (
        ["a", ("b", ("group", END)), ["a", "b"]],
        "b",
        "step 'b' names 'group' in to=, which is not in its branch of group 'group': a branch "
        "goes on at its own steps, or ends with END",
    ),
]
UNREACHABLE: list[tuple[list[Line], str, str]] = [
    (
        lines,
        lost,
        f"step '{lost}' is never reached: name it in a then= or to=, or remove it",
    )
    for lines, lost in (
        ([("a", END), "b"], "b"),
        ([("a", "c"), "b", "c"], "b"),
        ([("a", ("c", "d")), "b", "c", "d"], "b"),
        ([("a", END), "b", "c", ["b", "c"]], "group"),
        ([("a", END), "b", "c", [["a", "b"], "c"]], "b"),
        # A loop that nothing leads into.
        ([("a", END), "b", ("again", ("b", END))], "b"),
    )
]
ENDLESS: list[tuple[list[Line], str, str]] = [
    (lines, at, f"{cycle} would never end: put a branch into it that decides when to go on")
    for lines, at, cycle in (
        ([("a", "a")], "a", "a -> a"),
        (["a", ("b", "a")], "b", "a -> b -> a"),
        # What comes after is never reached, and the loop is the reason.
        (["a", "b", ("c", "b"), "d"], "c", "b -> c -> b"),
        # The way leads into it from behind.
        ([("start", "c"), "a", ("b", "a"), ("c", "b")], "b", "a -> b -> a"),
        # A branch beside it does not end it.
        ([("choose", ("a", END)), "a", ("b", "a")], "b", "a -> b -> a"),
        # Nor does one inside a group that is in it.
        (
            [("a", (END, "a")), "b", ["a", "b"], ("back", "group")],
            "back",
            "group -> back -> group",
        ),
        (["a", ("b", "a"), "c", [["a", "b"], "c"]], "b", "a -> b -> a"),
    )
]
NO_WAY_ON: list[tuple[list[Line], str, str]] = [
    (
        lines,
        at,
        f"branch '{at}' has no way on: wherever it goes, no end is reached; "
        "name END in its to=, or a step that leads to the end",
    )
    for lines, at in (
        ([("again", ("again",))], "again"),
        (["a", ("again", ("a",))], "again"),
        # What is after is never reached; the branch is the reason.
        (["a", ("again", ("a",)), "b"], "again"),
        # The first branch has two ways, and both end in the second's loop.
        ([("one", ("a", "b")), ("a", "one"), "b", ("two", ("b",))], "two"),
        (["a", ("again", ("a",)), "b", [["a", "again"], "b"]], "again"),
        # The branches of the group end, and nothing after them does.
        (["a", "b", ["a", "b"], ("again", ("group",))], "again"),
    )
]
GROUPS: list[tuple[list[Line], str, str]] = [
    (
        ["a", ["a", "b"]],
        "group",
        "group 'group' names 'b', which workflow 'flow' does not have",
    ),
    (
        ["a", "b", [["a", "b"], "a"]],
        "group",
        "group 'group' names 'a', which is in a branch of group 'group' already",
    ),
    (
        ["a", "b", [["a", "a"], "b"]],
        "group",
        "group 'group' names 'a', which is in a branch of group 'group' already",
    ),
    (
        ["a", ["a", "group"]],
        "group",
        "group 'group' names the group 'group': groups do not nest; let a children step start "
        "runs of a workflow of its own",
    ),
]


@pytest.mark.parametrize(
    ("lines", "at", "said"),
    [*UNKNOWN_TARGETS, *OTHER_LINES, *UNREACHABLE, *ENDLESS, *NO_WAY_ON, *GROUPS],
)
def test_an_order_that_cannot_work_is_refused_with_file_and_line(
    lines: list[Line], at: str, said: str
) -> None:
    flow = made(*lines)
    with pytest.raises(InvalidDefinition) as raised:
        Registry().add(flow)
    assert str(raised.value) == f"{flow.steps[at].place}: {said}"
    assert flow.steps[at].place.startswith(f"{__file__}:")


def test_the_lines_named_are_those_of_the_steps() -> None:
    assert made("a", "b").steps["b"].place == f"{__file__}:1002"


def test_a_step_of_two_groups_is_refused() -> None:
    flow = made("a", "b", "c", ["a", "b"])
    flow.parallel("b", "c", name="other")
    with pytest.raises(InvalidDefinition, match="'other' names 'b', which is in a branch of group"):
        flow.check()


def test_a_group_in_a_group_is_refused_whichever_is_written_first() -> None:
    flow = made("a", "b", "c")
    flow.parallel("c", "inner", name="outer")
    flow.parallel("a", "b", name="inner")
    with pytest.raises(InvalidDefinition, match="'outer' names the group 'inner': groups do not"):
        flow.check()


def test_a_group_that_leads_into_its_own_branch_is_refused() -> None:
    flow = made("a", "b")
    flow.parallel("a", "b", name="both", then="a")
    with pytest.raises(InvalidDefinition, match="'both' names 'a' in then=, which is inside group"):
        flow.check()


def test_a_workflow_that_was_refused_is_not_known() -> None:
    known = Registry()
    with pytest.raises(InvalidDefinition):
        known.add(made(("a", "b")))
    assert known.pairs() == []


def test_the_engine_is_told_of_an_order_that_cannot_work() -> None:
    with pytest.raises(InvalidDefinition, match="which workflow 'flow' does not have"):
        assert made(("a", "b")).first
