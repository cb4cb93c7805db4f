"""Intents: those that cannot become a request, and how parameters come into one."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from reconciliation.core.errors import InvalidProvider
from reconciliation.models import Operation
from reconciliation.services.providers import adapter_of
from tests.destination import RunningDestination
from tests.factories import advanced, ready_provider, tenant
from tests.scripted import Scripted
from tests.sending import posts
from workflows.core.definitions import Workflow
from workflows.core.intents import Intent
from workflows.models import Run
from workflows.registry import registry
from workflows.services.run_view import RunView
from workflows.services.runs import start

pytestmark = pytest.mark.django_db

intents: dict[str, Intent] = {}
intending = Workflow("tests.intending")


@intending.write(provider="desk")
def comment(run: RunView) -> Intent:
    """Return what the test says"""
    return intents["it"]


def intended(**changes: Any) -> Run:
    registry.add(intending)
    fields: dict[str, Any] = {
        "action": "comments.create",
        "target": "ticket 17",
        "parameters": {"ticket": "17", "body": "Hello"},
        "summary": "Comment",
    }
    intents["it"] = Intent(**(fields | changes))
    return advanced(start("tests.intending", {}, tenant=tenant()))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"action": "comments.delete"}, "no action 'comments.delete' is declared"),
        ({"parameters": {"body": "Hello"}}, "takes 'ticket', which is not given"),
        ({"parameters": {"ticket": "1", "body": "a\x00"}}, r"at $.body: text with a NUL"),
        ({"parameters": {"ticket": "1", "body": ["\ud800"]}}, r"at $.body[0]: text with half"),
        ({"parameters": {"ticket": "1", "body": 2**60}}, r"at $.body: 1152921504606846976"),
        ({"parameters": {"ticket": "1", "body": float("nan")}}, r"at $.body: nan"),
        *(
            pytest.param(changes, says)
            for changes, says in [
                ({"parameters": {"ticket": "1", "amount": Decimal("1.5")}}, "$.amount"),
                ({"parameters": {"ticket": "1", "body": {1, 2}}}, "$.body"),
                ({"parameters": {"ticket": "1", "body": 2**53}}, "$.body"),
                ({"parameters": {1: "one", "ticket": "1"}}, "parameters"),
                ({"summary": "x" * 301}, "summary"),
                ({"target": "x" * 301}, "target"),
                ({"target": "a\x00b"}, "target"),
                ({"effect": "e" * 101}, "effect"),
                ({"currency": "EURO"}, "currency"),
                ({"amount": Decimal("NaN")}, "amount"),
            ]
        ),
    ],
)
def test_an_intent_that_cannot_become_a_request_fails_the_step_in_words(
    destination: RunningDestination, changes: dict[str, Any], says: str
) -> None:
    ready_provider("desk", destination.url)
    run = intended(**changes)
    assert (run.state, run.failure["reason"]) == ("failed", "intent_refused")
    assert says in run.failure["message"]
    assert not Operation.objects.exists()
    assert posts(destination) == []


def test_a_provider_that_is_not_set_up_is_named() -> None:
    run = intended()
    assert run.failure["reason"] in ("intent_refused", "not_ready")
    assert "provider 'desk', which is not set up here" in run.failure["message"]


@pytest.mark.parametrize("ticket", ["..", "."])
def test_a_parameter_stays_inside_its_part_of_the_path(scripted: Scripted, ticket: str) -> None:
    ready_provider("desk", scripted.url)
    intended(parameters={"ticket": ticket, "body": "Hello"})
    assert {path for _, path in scripted.requests} <= {f"/blind/v1/tickets/{ticket}/comments"}


@pytest.mark.parametrize(
    ("ticket", "path"),
    [
        ("a/b", "/blind/v1/tickets/a%2Fb/comments"),
        ("../../admin", "/blind/v1/tickets/..%2F..%2Fadmin/comments"),
        ("1?x=1#y", "/blind/v1/tickets/1%3Fx%3D1%23y/comments"),
        ("{body}", "/blind/v1/tickets/%7Bbody%7D/comments"),
    ],
)
def test_a_parameter_is_quoted_into_the_path(scripted: Scripted, ticket: str, path: str) -> None:
    ready_provider("desk", scripted.url)
    intended(parameters={"ticket": ticket, "body": "Hello"})
    assert scripted.requests == [("POST", path)]


def test_no_parameter_is_dropped_for_the_marker() -> None:
    provider = ready_provider("payments")
    assert provider.contract_version is not None
    adapter = adapter_of(provider, provider.contract_version.contract)
    parameters = {"order": "A1", "metadata": "a note that the author meant to send"}
    with pytest.raises(InvalidProvider, match="'metadata' stands where the provider's marker"):
        adapter.prepare("refunds.create", parameters, uuid4(), "k")


def test_a_refusal_is_held_where_the_author_says_so(destination: RunningDestination) -> None:
    holding = Workflow("tests.holding_write")

    @holding.write(provider="desk", on_failure="hold")
    def comment(run: RunView) -> Intent:
        return Intent("comments.create", "ticket 17", {"ticket": "17", "body": "x"}, "Comment")

    registry.add(holding)
    ready_provider("desk", destination.url, account="not-an-account")
    assert advanced(start("tests.holding_write", {}, tenant=tenant())).state == "held"
