"""What an approval step takes, and what is refused where it is written."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from workflows.core.definitions import END, Workflow
from workflows.core.errors import InvalidDefinition, UsageError
from workflows.core.intents import Intent
from workflows.core.proposals import Approved, ProposedAction, check_action

DAY = timedelta(days=1)


def ask(run: Any) -> ProposedAction:
    raise NotImplementedError


def send(run: Any) -> Intent:
    raise NotImplementedError


def test_it_keeps_what_it_was_given_and_leads_where_its_answers_say() -> None:
    flow = Workflow("flow")
    flow.approval(action="refunds.create", expires_in=DAY, on_denied=END, on_question="ask_more")(
        ask
    )
    flow.write(provider="payments", approved_by=ask)(send)

    @flow.step()
    def ask_more(run: Any) -> int:
        return 1

    step = flow.steps["ask"]
    assert step.approval is not None
    assert (step.approval.on_denied, step.approval.on_expired) == (END, "hold")
    assert (step.to, step.sensitive, step.returns) == ((END, "ask_more"), True, Approved)
    assert flow.plan.next["ask"] == ("send", "ask_more")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"action": ""}, "action="),
        ({"expires_in": timedelta(0)}, "expires_in="),
        ({"expires_in": timedelta(days=400)}, "at most 366 days"),
        ({"on_denied": "No Step"}, "goes on at"),
    ],
)
def test_options_that_no_approval_can_have(options: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"action": "refunds.create", "expires_in": DAY} | options
    with pytest.raises(InvalidDefinition, match=said):
        Workflow("flow").approval(**given)(ask)


def test_it_says_that_it_returns_a_proposed_action() -> None:
    def other(run: Any) -> Intent:
        raise NotImplementedError

    with pytest.raises(InvalidDefinition, match="-> ProposedAction"):
        Workflow("flow").approval(action="a", expires_in=DAY)(other)


@pytest.mark.parametrize("order", ["unknown", "no approval", "after it"])
def test_a_write_is_approved_by_an_approval_that_comes_before_it(order: str) -> None:
    flow = Workflow("flow")
    if order == "no approval":

        @flow.step()
        def other(run: Any) -> int:
            return 1

    named = {"unknown": "nobody", "no approval": "other", "after it": "ask"}[order]
    flow.write(provider="payments", approved_by=named)(send)
    flow.approval(action="a", expires_in=DAY)(ask)
    said = "does not come before it" if order == "after it" else "is no approval step"
    with pytest.raises(InvalidDefinition, match=said):
        flow.check()


@pytest.mark.parametrize(
    "change",
    [
        {"action": "accounts.close"},
        {"reason": "x" * 1001},
        {"proposed_by": "nobody in particular"},
        {"on_behalf_of": "ada"},
        {"parameters": {"amount": float("nan")}},
        {"precondition": {"state": object()}},
    ],
)
def test_what_cannot_be_proposed_as_it_is(change: dict[str, Any]) -> None:
    fields: dict[str, Any] = {
        "action": "refunds.create",
        "target": "order 1",
        "parameters": {},
        "summary": "Refund order 1",
    }
    check_action(ProposedAction(**fields), "refunds.create")
    with pytest.raises(UsageError):
        check_action(ProposedAction(**fields | change), "refunds.create")
