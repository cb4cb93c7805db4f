"""The authorisation boundary as a pure function: each check, and what makes up for what."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from workflows.core.boundary.canonical import (
    amount_text,
    canonical,
    differences,
    equal,
    leaves,
    shown,
)
from workflows.core.boundary.evaluate import evaluate
from workflows.core.boundary.policy import Policy, parse_policy
from workflows.core.boundary.requests import Approvals, Given, Request
from workflows.core.boundary.subjects import Subject
from workflows.core.errors import InvalidPolicy, UsageError

NOW = datetime(2026, 3, 10, 14, 0, tzinfo=UTC)  # a Tuesday
BOT, ADA, BEN = (Subject.parse(text) for text in ("agent:bot", "person:ada", "person:ben"))

REQUEST = Request(
    subject=BOT,
    action="refunds.create",
    tenant="northwind",
    parameters={"order": "ORD-7001", "amount": 12500, "card": {"country": "NL"}},
    target="order ORD-7001",
    amount=Decimal("125.00"),
    currency="EUR",
    on_behalf_of=ADA,
)


def policy(**document: Any) -> Policy:
    plain = {
        "tools": [{"action": "refunds.create", "risk": "high"}],
        "grants": [{"subjects": ["agent:bot"], "actions": ["refunds.create"]}],
    }
    return Policy(name="northwind, 1", document=parse_policy(plain | document))


def granting(**limits: Any) -> Policy:
    return policy(grants=[{"subjects": ["agent:bot"], "actions": ["refunds.*"]} | limits])


def asking(**rule: Any) -> Policy:
    return policy(approvals=[{"actions": ["refunds.*"]} | rule])


def by(subject: Subject, *groups: str, **fields: Any) -> Given:
    return Given(subject, NOW - timedelta(hours=1), frozenset(groups), **fields)


def approved(*given: Given, **fields: Any) -> Approvals:
    expires = fields.pop("expires_at", NOW + timedelta(hours=1))
    return Approvals(expires, given, proposers=frozenset({BOT, ADA}), **fields)


BEN_APPROVED = approved(by(BEN, "finance"))

# name, policy, approvals, request, the check that fails; empty: allowed
CASES: list[tuple[str, Policy | None, Approvals | None, Request, str]] = [
    # --- nothing is set up
    ("no policy and no approval asked for", None, None, REQUEST, ""),
    ("no policy, approved", None, BEN_APPROVED, REQUEST, ""),
    ("no policy, not approved", None, approved(), REQUEST, "approvals"),
    # --- tools
    ("an action that is no tool", policy(tools=[]), None, REQUEST, "tool"),
    ("a policy that leaves others alone", policy(tools=[], grants=[], others="allow"), None, REQUEST, ""),
    ("parameters that do not fit", policy(tools=[{"action": "refunds.create", "parameters": {"required": ["reason"]}}]), None, REQUEST, "parameters"),
    ("a schema of elsewhere is not fetched", policy(tools=[{"action": "refunds.create", "parameters": {"$ref": "http://127.0.0.1:9/x"}}]), None, REQUEST, "parameters"),
    # --- who
    ("one who is switched off", policy(), None, replace(REQUEST, active=False), "subject"),
    ("another agent", policy(), None, replace(REQUEST, subject=Subject.parse("agent:other")), "grant"),
    ("a person of that name is no agent", policy(), None, replace(REQUEST, subject=Subject.parse("person:bot")), "grant"),
    ("any agent", granting(subjects=["agent:*"]), None, REQUEST, ""),
    ("a group", granting(subjects=["group:support"]), None, replace(REQUEST, subject=BEN, groups=frozenset({"support"})), ""),
    ("another group", granting(subjects=["group:support"]), None, replace(REQUEST, subject=BEN, groups=frozenset({"sales"})), "grant"),
    # --- how far
    ("another tenant", granting(tenants=["southbay"]), None, REQUEST, "grant"),
    ("up to the amount", granting(max_amount="125", currency="EUR"), None, REQUEST, ""),
    ("above the amount", granting(max_amount="124.99", currency="EUR"), None, REQUEST, "grant"),
    ("another currency is above", granting(max_amount="999", currency="USD"), None, REQUEST, "grant"),
    ("an amount nobody states is above", granting(max_amount="999", currency="EUR"), None, replace(REQUEST, amount=None), "grant"),
    ("a negative amount is not below", granting(max_amount="100", currency="EUR"), None, replace(REQUEST, amount=Decimal(-125)), "grant"),
    ("a parameter within", granting(parameters={"amount": {"max": 12500, "min": 1}}), None, REQUEST, ""),
    ("a parameter beyond", granting(parameters={"amount": {"max": 12499}}), None, REQUEST, "grant"),
    ("a parameter that is not there", granting(parameters={"fee": {"max": 1}}), None, REQUEST, "grant"),
    ("a prefix", granting(parameters={"order": {"prefix": "ORD-"}}), None, REQUEST, ""),
    ("another prefix", granting(parameters={"order": {"prefix": "INV-"}}), None, REQUEST, "grant"),
    ("one of those, nested", granting(parameters={"card.country": {"one_of": ["NL", "BE"]}}), None, REQUEST, ""),
    ("True is not 1", granting(parameters={"amount": {"one_of": [1]}}), None, replace(REQUEST, parameters={"amount": True}), "grant"),
    ("True is no number", granting(parameters={"amount": {"max": 5}}), None, replace(REQUEST, parameters={"amount": True}), "grant"),
    ("in its window", granting(window={"days": [2], "opens": "09:00", "closes": "17:00"}), None, REQUEST, ""),
    ("on another day", granting(window={"days": [1]}), None, REQUEST, "grant"),
    ("its end is not in it", granting(window={"opens": "09:00", "closes": "14:00"}), None, REQUEST, "grant"),
    ("over midnight", granting(window={"opens": "22:00", "closes": "15:00"}), None, REQUEST, ""),
    ("before it begins", granting(window={"since": "2026-03-11T00:00:00Z"}), None, REQUEST, "grant"),
    ("another grant makes up for it", policy(grants=[{"subjects": ["*"], "actions": ["*"], "tenants": ["x"]}, {"subjects": ["agent:bot"], "actions": ["refunds.create"]}]), None, REQUEST, ""),
    # --- approvals
    ("a rule, and nobody was asked", asking(), None, REQUEST, "proposal"),
    ("a rule, and one has approved", asking(), BEN_APPROVED, REQUEST, ""),
    ("a rule that is not for so little", asking(above="1000", currency="EUR", needed=2), BEN_APPROVED, REQUEST, ""),
    ("a rule for so much", asking(above="100", currency="EUR", needed=2), BEN_APPROVED, REQUEST, "approvals"),
    ("another currency counts as more", asking(above="1000", currency="USD", needed=2), BEN_APPROVED, REQUEST, "approvals"),
    ("a rule of another risk", asking(risks=["low"], needed=3), BEN_APPROVED, REQUEST, ""),
    ("two of a group", asking(needed=2, groups=["finance"]), approved(by(BEN, "finance"), by(Subject.parse("person:cy"), "finance")), REQUEST, ""),
    ("one of them is of another group", asking(needed=2, groups=["finance"]), approved(by(BEN, "finance"), by(Subject.parse("person:cy"), "sales")), REQUEST, "approvals"),
    ("nobody counts twice", asking(needed=2), approved(by(BEN), by(BEN)), REQUEST, "approvals"),
    ("the proposer", asking(), approved(by(BOT)), REQUEST, "self_approval"),
    ("the person for whom it is", asking(), approved(by(ADA)), REQUEST, "self_approval"),
    ("and another one beside", asking(), approved(by(ADA), by(BEN)), REQUEST, ""),
    ("withdrawn", asking(), approved(by(BEN, withdrawn=True)), REQUEST, "withdrawn"),
    ("one who may no more", asking(), approved(by(BEN, lacks="may not")), REQUEST, "approver"),
    ("an approval of something else", asking(), approved(by(BEN, fits=False)), REQUEST, "action"),
    ("other parameters than approved", None, replace(BEN_APPROVED, changed=("the amount",)), REQUEST, "action"),
    ("used by another write", None, replace(BEN_APPROVED, used=True), REQUEST, "used"),
    ("to the last moment", None, approved(by(BEN), expires_at=NOW + timedelta(microseconds=1)), REQUEST, ""),
    ("and no longer", None, approved(by(BEN), expires_at=NOW), REQUEST, "expiry"),
    ("denied", None, replace(BEN_APPROVED, closed="denied"), REQUEST, "approvals"),
    ("a source that the policy does not name", None, approved(by(Subject.parse("source:itsm"))), REQUEST, "approvals"),
    ("a source that it names", asking(groups=["finance"], sources=["itsm"]), approved(by(Subject.parse("source:itsm"))), REQUEST, ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "approvals", "request_", "failed"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_each_check(
    policy: Policy | None, approvals: Approvals | None, request_: Request, failed: str
) -> None:
    verdict = evaluate(request_, policy, approvals, NOW)
    assert (verdict.allowed, verdict.check) == (not failed, failed), verdict.reason
    assert bool(verdict.helps) == bool(failed)
    # What was asked can be asked again from its record.
    again = Request.from_json(request_.as_json())
    back = Approvals.from_json(approvals.as_json()) if approvals else None
    assert evaluate(again, policy, back, NOW) == verdict


def test_a_no_says_who_can_renew_it_and_only_where_that_helps() -> None:
    lapsed = approved(by(BEN, "finance"), expires_at=NOW)
    verdict = evaluate(REQUEST, asking(groups=["finance"]), lapsed, NOW)
    assert (verdict.renewable, "1 of finance" in verdict.helps) == (True, True)
    beyond = granting(max_amount="1", currency="EUR")
    assert not evaluate(REQUEST, beyond, lapsed, NOW).renewable


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"tool": []}, "tool"),
        ({"grants": [{"subjects": ["bot"], "actions": ["a"]}]}, "grants.0.subjects"),
        ({"grants": [{"subjects": [], "actions": ["a"]}]}, "grants.0.subjects"),
        ({"grants": [{"subjects": ["*"], "actions": ["a*b"]}]}, "grants.0.actions"),
        ({"grants": [{"subjects": ["*"], "actions": ["a"], "max_amount": "5"}]}, "currency"),
        ({"grants": [{"subjects": ["*"], "actions": ["a"], "parameters": {"x": {}}}]}, "limit"),
        ({"approvals": [{"actions": ["a"], "above": "5"}]}, "currency"),
        ({"approvals": [{"actions": ["a"], "needed": 0}]}, "needed"),
        ({"tools": [{"action": "a", "parameters": {"type": "nonsense"}}]}, "JSON Schema"),
        ({"tools": [{"action": "a"}, {"action": "a"}]}, "twice"),
        ({"tools": [{"action": "a", "parameters": {"pattern": "("}}]}, "JSON Schema"),
        (
            {"grants": [{"subjects": ["*"], "actions": ["a"], "window": {"opens": "07:00Z"}}]},
            "opens",
        ),
    ],
)
def test_a_policy_that_cannot_work_is_refused(document: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidPolicy, match=place):
        parse_policy(document)


@pytest.mark.parametrize(
    "text", ["ada", "robot:x", "agent:", "agent: x", "agent:a\nb", "person:a:b"]
)
def test_what_names_no_subject(text: str) -> None:
    with pytest.raises(UsageError):
        Subject.parse(text)


def test_equal_parameters_are_written_one_way() -> None:
    assert canonical({"b": 1, "a": [True, None, "é"]}) == '{"a":[true,null,"é"],"b":1}'.encode()
    assert canonical({"a": 1.0}) == canonical({"a": 1})
    assert amount_text(Decimal("125.0000")) == amount_text(Decimal(125)) == "125"
    assert amount_text(Decimal(1200)) == "1200"


def test_what_differs_is_named_by_its_path() -> None:
    before = {"order": "A", "lines": [{"sum": 1}], "gone": True}
    after = {"order": "A", "lines": [{"sum": 2}], "new": None}
    found = [(each.path, each.before, each.after) for each in differences(before, after)]
    assert found == [("gone", "true", None), ("lines[0].sum", "1", "2"), ("new", None, "null")]


def test_two_values_that_read_alike_are_told_apart() -> None:
    before = {"a": 1, "b": "x" * 3000, "c": {"d.e": 1}, "f": [], "g": None}
    after = {"a": "1", "b": "x" * 3000 + "y", "c": {"d": {"e": 1}}, "f": {}, "g": "null"}
    found = {each.path: (each.before, each.after) for each in differences(before, after)}
    assert found["a"] == ("1", '"1"')
    assert found["b"] == (
        f"{'x' * 2000}… and 1,000 characters more",
        f"{'x' * 2000}… and 1,001 characters more",
    )
    assert (found['c["d.e"]'], found["c.d.e"]) == (("1", None), (None, "1"))
    assert (found["f"], found["g"]) == (("[]", "{}"), ("null", '"null"'))
    assert differences({"a": 1.0}, {"a": 1}) == []


def test_nothing_in_a_value_is_hidden_from_whoever_approves_it() -> None:
    assert shown("Zürich, 2. Stock") == "Zürich, 2. Stock"
    assert shown("DE12\u202e34") == '"DE12\\u202e34"'
    assert shown("a\u200bb") == '"a\\u200bb"'
    assert shown("one\ntwo") == '"one\\ntwo"'
    assert shown("") == '""'
    paths = [path for path, _ in leaves({"a\u202eb": 1, "c d": 2})]
    assert paths == ['["a\\u202eb"]', '["c d"]']


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        (0, -0.0, True),
        (1, True, False),
        (1, "1", False),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ("\u00fc", "u\u0308", False),
        (2**60, 2**60, False),  # no reader of JSON has to tell it from its neighbours
    ],
)
def test_what_is_the_same_json(one: Any, other: Any, same: bool) -> None:
    assert equal(one, other) is same


@pytest.mark.parametrize(
    ("limit", "value", "within"),
    [
        ({"max": "50"}, 50, True),
        ({"max": "50"}, "50.00", True),
        ({"max": "50"}, 50.01, False),
        ({"max": "50"}, "9e-1", False),
        ({"max": "50"}, "1_0", False),
        ({"max": "50"}, "\u0665", False),  # a digit to Python, and to few others
        ({"max": "50"}, " 5", False),
        ({"max": "50"}, True, False),
        ({"max": "50"}, None, False),
        ({"max": "50", "min": "0"}, -1, False),
        ({"prefix": "1", "max": "50"}, "100", False),
        ({"prefix": "ORD-"}, "ord-1", False),
        ({"prefix": "ORD-"}, ["ORD-1"], False),
        ({"one_of": [1]}, 1.0, True),
        ({"one_of": [1]}, True, False),
        ({"one_of": [[1]]}, [True], False),
    ],
)
def test_how_far_a_limit_reaches(limit: dict[str, Any], value: Any, within: bool) -> None:
    parameters = {"x": value, "amount": 1}
    asked = replace(REQUEST, parameters=parameters)
    verdict = evaluate(asked, granting(parameters={"x": limit}), None, NOW)
    assert verdict.allowed is within, verdict.reason


@pytest.mark.parametrize(
    ("at", "is_open"),
    [
        ("2026-03-27T22:30:00+00:00", True),  # a Friday
        ("2026-03-28T05:30:00+00:00", True),  # its night
        ("2026-03-28T06:00:00+00:00", False),
        ("2026-03-28T22:30:00+00:00", False),  # a Saturday
        ("2026-03-30T02:00:00+00:00", False),  # the night of a Sunday
        ("2026-03-28T01:59:00-04:00", True),  # the same moment, wherever it is told
        ("2026-03-29T03:30:00+02:00", False),  # summer time has begun in between
    ],
)
def test_hours_over_midnight_are_of_the_day_on_which_they_begin(at: str, is_open: bool) -> None:
    window = {"days": [1, 2, 3, 4, 5], "opens": "22:00", "closes": "06:00"}
    verdict = evaluate(REQUEST, granting(window=window), None, datetime.fromisoformat(at))
    assert verdict.allowed is is_open


def test_a_schema_without_an_end_is_a_no() -> None:
    tool = {"action": "refunds.create", "parameters": {"$ref": "#"}}
    verdict = evaluate(REQUEST, policy(tools=[tool]), None, NOW)
    assert (verdict.allowed, verdict.check) == (False, "parameters")


@pytest.mark.parametrize("name", ["ada", "Ada", "ADA", "\uff21da"])
def test_a_proposer_is_known_under_any_spelling(name: str) -> None:
    given = by(Subject.parse(f"person:{name}"))
    assert evaluate(REQUEST, asking(), approved(given), NOW).check == "self_approval"
