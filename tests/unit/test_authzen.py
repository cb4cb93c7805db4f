"""The AuthZEN Authorization API: what is asked of a decision point, and what its answers say."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from reconciliation.core.authzen import EVALUATION, EVALUATIONS, questions, said_of
from workflows.core.boundary.authzen import Semantic, batch_of, evaluation_of
from workflows.core.boundary.requests import Request
from workflows.core.boundary.subjects import Subject
from workflows.core.errors import UsageError
from workflows.core.json_text import parse

REQUEST = Request(
    subject=Subject.parse("agent:bot"),
    action="refunds.create",
    tenant="northwind",
    parameters={"order": "ORD-1"},
    target="order ORD-1",
    amount=Decimal("5.00"),
    currency="EUR",
)


def test_one_subject_is_one_evaluation() -> None:
    path, body = questions(REQUEST)
    assert path == EVALUATION
    assert body["subject"] == {"type": "agent", "id": "bot"}
    assert body["action"] == {"name": "refunds.create"}
    assert (body["resource"]["type"], body["resource"]["id"]) == ("refunds", "order ORD-1")


def test_an_agent_and_the_person_it_acts_for_are_asked_about_together() -> None:
    path, body = questions(replace(REQUEST, on_behalf_of=Subject.parse("person:ada")))
    assert path == EVALUATIONS
    subjects = [each["subject"] for each in body["evaluations"]]
    assert subjects == [
        {"type": "agent", "id": "bot", "properties": {"on_behalf_of": "ada"}},
        {"type": "user", "id": "ada"},
    ]
    assert body["options"] == {"evaluations_semantic": "deny_on_first_deny"}


YES, NO = {"decision": True}, {"decision": False}


@pytest.mark.parametrize(
    ("status", "document", "path", "number", "allowed", "said"),
    [
        (200, YES, EVALUATION, 1, True, "yes"),
        (200, NO, EVALUATION, 1, False, "says no"),
        (200, {"decision": "true"}, EVALUATION, 1, False, "cannot be read"),
        (200, {"decision": 1}, EVALUATION, 1, False, "cannot be read"),
        (200, {}, EVALUATION, 1, False, "cannot be read"),
        (200, None, EVALUATION, 1, False, "cannot be read"),
        (None, YES, EVALUATION, 1, False, "in time"),
        (201, YES, EVALUATION, 1, False, "201"),
        (302, YES, EVALUATION, 1, False, "302"),
        (500, YES, EVALUATION, 1, False, "500"),
        (200, YES | {"context": {"obligations": [{"id": "mfa"}]}}, EVALUATION, 1, False, "obligations"),
        (200, YES | {"context": {"obligations": []}}, EVALUATION, 1, True, "yes"),
        (200, NO | {"context": {"reason_user": {"en": "Too much."}}}, EVALUATION, 1, False, "Too much."),
        (200, YES | {"obligations": ["mfa"]}, EVALUATION, 1, False, "obligations"),
        (200, YES | {"context": {"Obligations": ["mfa"]}}, EVALUATION, 1, False, "obligations"),
        (200, YES | {"context": ["mfa"]}, EVALUATION, 1, False, "cannot be read"),
        (200, YES | {"context": None}, EVALUATION, 1, True, "yes"),
        (200, {"Decision": True}, EVALUATION, 1, False, "cannot be read"),
        (200, [YES], EVALUATION, 1, False, "cannot be read"),
        (204, None, EVALUATION, 1, False, "204"),
        (200, {"evaluations": [YES, YES], "obligations": ["mfa"]}, EVALUATIONS, 2, False, "obligations"),
        (200, {"evaluations": [YES, YES]}, EVALUATIONS, 2, True, "yes"),
        (200, {"evaluations": [YES, NO]}, EVALUATIONS, 2, False, "says no"),
        (200, {"evaluations": [NO]}, EVALUATIONS, 2, False, "says no"),
        (200, {"evaluations": [YES]}, EVALUATIONS, 2, False, "everything"),
        (200, {"evaluations": [YES, YES, YES]}, EVALUATIONS, 2, False, "cannot be read"),
        (200, {"evaluations": []}, EVALUATIONS, 2, False, "cannot be read"),
        (200, YES, EVALUATIONS, 2, False, "cannot be read"),
    ],
)  # fmt: skip
def test_what_is_not_plainly_a_yes_is_a_no(
    status: int | None, document: Any, path: str, number: int, allowed: bool, said: str
) -> None:
    found = said_of(status, document, path, number, "asked-1")
    assert found.allowed is allowed
    assert said in found.reason
    assert found.decision_id == "asked-1"


def test_the_id_of_the_decision_is_its_own_where_it_has_one() -> None:
    answer = YES | {"context": {"id": "decision-7"}}
    assert said_of(200, answer, EVALUATION, 1, "asked-1").decision_id == "decision-7"


# --- what is served ---------------------------------------------------------------------------------

ASKED: dict[str, Any] = {
    "subject": {"type": "user", "id": "ada"},
    "action": {"name": "refunds.create"},
    "resource": {
        "type": "refunds",
        "id": "ORD-1",
        "properties": {"amount": "12.50", "currency": "EUR", "parameters": {"order": "ORD-1"}},
    },
}


def test_an_evaluation_is_read() -> None:
    found = evaluation_of(ASKED)
    assert (str(found.subject), found.action, found.target) == (
        "person:ada",
        "refunds.create",
        "ORD-1",
    )
    assert (found.amount, found.currency, found.parameters) == (
        Decimal("12.50"),
        "EUR",
        {"order": "ORD-1"},
    )


@pytest.mark.parametrize(
    "change",
    [
        {"subject": None},
        {"subject": {"type": "user"}},
        {"subject": {"type": "martian", "id": "x"}},
        {"action": {}},
        {"resource": {"type": "refunds"}},
        {"resource": {"id": "x"}},
        {"resource": {"type": "r", "id": "x", "properties": {"amount": "a lot"}}},
        {"resource": {"type": "r", "id": "x", "properties": {"parameters": []}}},
        {"context": "x"},
        {"subject": {"type": "user", "id": "a\ud800"}},
        {"subject": {"type": "user", "id": "ada", "properties": {"on_behalf_of": 1}}},
        {"action": {"name": "refunds\x00create"}},
        {"resource": {"type": "refunds", "id": "\ud800"}},
        {"resource": {"type": "refunds", "id": "x" * 1001}},
        {"resource": {"type": "r", "id": "x", "properties": {"currency": "\ud800"}}},
        {"resource": {"type": "r", "id": "x", "properties": {"amount": True}}},
        {"resource": {"type": "r", "id": "x", "properties": {"amount": "1_0"}}},
        {"resource": {"type": "r", "id": "x", "properties": {"amount": "NaN"}}},
        {"resource": {"type": "r", "id": "x", "properties": {"amount": "Infinity"}}},
    ],
)
def test_what_is_no_evaluation_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        evaluation_of(ASKED | change)


@pytest.mark.parametrize(
    ("written", "read"),
    [("1000.00000000000000000001", "1000.00000000000000000001"), ("1e400", "1E+400"), ("-5", "-5")],
)
def test_an_amount_is_the_digits_that_were_written(written: str, read: str) -> None:
    whole = parse(json.dumps(ASKED).replace('"12.50"', written).encode())
    assert str(evaluation_of(whole).amount) == read


def test_several_take_what_they_leave_out_from_the_top() -> None:
    other = {"resource": {"type": "refunds", "id": "ORD-2"}}
    batch = batch_of(ASKED | {"evaluations": [{}, other]})
    assert batch is not None
    assert [evaluation_of(each).target for each in batch.evaluations] == ["ORD-1", "ORD-2"]
    assert batch.semantic is Semantic.EXECUTE_ALL
    assert batch_of(ASKED) is None
    for wrong in ({"evaluations": [1]}, {"evaluations": {}}, {"evaluations": [{}] * 101}):
        with pytest.raises(UsageError):
            batch_of(ASKED | wrong)
    with pytest.raises(UsageError, match="semantic"):
        batch_of(ASKED | {"evaluations": [{}], "options": {"evaluations_semantic": "maybe"}})


@pytest.mark.parametrize(
    ("semantic", "allowed", "ends"),
    [
        ("execute_all", False, False),
        ("deny_on_first_deny", False, True),
        ("deny_on_first_deny", True, False),
        ("permit_on_first_permit", True, True),
        ("permit_on_first_permit", False, False),
    ],
)
def test_when_the_rest_is_not_answered(semantic: str, allowed: bool, ends: bool) -> None:
    assert Semantic(semantic).ends(allowed) is ends
