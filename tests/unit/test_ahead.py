"""What comes after a step, in words: what begins, what is held back, and what a failure ends."""

from __future__ import annotations

import pytest

from workflows.core.ahead import Ahead, Follows, Waiting, fails, follows, goes_on, starts
from workflows.core.definitions import Workflow
from workflows.core.intents import Intent
from workflows.core.joining import JoinPolicy
from workflows.services.run_view import RunView

again = Workflow("tests.ahead_again")


@again.step()
def load(run: RunView) -> int:
    return 1


@again.write(provider="payments")
def pay(run: RunView) -> Intent:
    raise NotImplementedError


@again.branch(to=("load", "close"))
def more(run: RunView) -> str:
    return "close"


@again.step()
def close(run: RunView) -> str:
    return "closed"


side_by_side = Workflow("tests.ahead_side_by_side")


@side_by_side.write(provider="payments")
def refund(run: RunView) -> Intent:
    raise NotImplementedError


@side_by_side.step()
def book(run: RunView) -> str:
    return "booked"


@side_by_side.write(provider="desk")
def note(run: RunView) -> Intent:
    raise NotImplementedError


side_by_side.parallel([refund, book], note, name="settle")


@side_by_side.step()
def finish(run: RunView) -> str:
    return "done"


def after(workflow: Workflow, name: str) -> tuple[str, list[str]]:
    found = follows(workflow, name)
    return (found.next.name if found.next else "", [step.name for step in found.later])


def waiting(join: JoinPolicy | None, **fields: object) -> Ahead:
    """The end of a run that Order 7 waits for."""
    of_parent = follows(again, "load")
    return Ahead(Follows(), Waiting("Order 7", "labels", join, follows=of_parent, **fields))  # type: ignore[arg-type]


def test_what_begins_next_is_the_step_that_follows_and_not_the_first_that_a_loop_leads_to() -> None:
    assert after(again, "pay") == ("more", ["load", "close"])
    assert goes_on(Ahead(follows(again, "pay"))) == "The run goes on with more."
    assert starts(Ahead(follows(again, "pay"))) == (
        "more starts after that. load and close may follow.",
    )


def test_a_branch_of_a_group_leads_to_its_own_steps() -> None:
    assert after(side_by_side, "refund") == ("book", [])
    assert after(side_by_side, "note") == ("", [])
    assert after(side_by_side, "settle") == ("finish", [])
    assert starts(Ahead(follows(side_by_side, "settle"))) == ("finish starts after that.",)


def test_a_run_that_nobody_waits_for_completes() -> None:
    assert goes_on(Ahead()) == "The run completes."
    assert fails(Ahead(follows(again, "load")), "load") == (
        "The run fails at load. Never run: pay, more and close."
    )


def test_who_waits_for_a_branch_goes_on_when_the_other_branches_have_ended() -> None:
    alone = waiting(JoinPolicy.EVERY)
    assert goes_on(alone) == "This branch of labels ends. Order 7 goes on with pay."
    beside = waiting(JoinPolicy.EVERY, beside=("note is held",))
    assert goes_on(beside).endswith(
        "Order 7 goes on with pay when the other branches have ended, too: note is held."
    )
    assert fails(beside, "refund").endswith(
        "Order 7 fails at labels when the other branches have ended, too: note is held."
    )


def test_where_another_branch_has_failed_the_group_comes_to_nothing() -> None:
    assert goes_on(waiting(JoinPolicy.EVERY, broken=True)).endswith(
        "Order 7 fails at labels with it."
    )
    held = waiting(JoinPolicy.EVERY, broken=True, holds=True)
    assert goes_on(held).endswith("Order 7 is held at labels with it.")


@pytest.mark.parametrize(
    ("join", "completed", "failed"),
    [
        (
            JoinPolicy.ALL,
            "Order 7 goes on with pay when all runs that it started at labels have ended.",
            "Order 7 goes on with pay all the same, when all runs that it started at labels have "
            "ended.",
        ),
        (
            JoinPolicy.FIRST,
            "Order 7 goes on with pay at once: it waits at labels for the first that completes.",
            "Order 7 fails at labels unless another run that it started there completes.",
        ),
        (
            JoinPolicy.ANY_FAILURE,
            "Order 7 goes on with pay when all runs that it started at labels have completed.",
            "Order 7 fails at labels with it.",
        ),
        (
            None,
            "Order 7 waits for that at labels.",
            "Order 7 waits for that at labels.",
        ),
    ],
)
def test_who_waits_for_a_child_goes_on_as_its_join_says(
    join: JoinPolicy | None, completed: str, failed: str
) -> None:
    assert goes_on(waiting(join)) == f"The run completes. {completed}"
    assert fails(waiting(join), "buy") == f"The run fails at buy. {failed}"
