"""An external decision point over HTTP, as the AuthZEN specification documents it.

The far side here reads what the specification has a request hold and refuses any other; its
answers are those of the specification, and those that no client should take for a yes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from reconciliation.core.errors import InvalidProvider
from reconciliation.models import DecisionPoint, Hold
from reconciliation.services.decision_points import ask_decision_point, save_decision_point
from tests.approving import answered, approver, policy, proposed
from tests.contract.far_side import FarSide, Said, Seen
from tests.destination import RunningDestination
from tests.factories import administrator, advanced, started_run
from tests.sending import effects
from workflows.core.boundary.requests import Request
from workflows.core.boundary.subjects import Subject
from workflows.models import AuthorisationRecord, Proposal

pytestmark = pytest.mark.django_db

ONE, ALL = "/access/v1/evaluation", "/access/v1/evaluations"
REQUEST = Request(Subject.parse("agent:bot"), "refunds.create", "northwind", target="order 1")
FOR_ADA = Request(
    Subject.parse("agent:bot"),
    "refunds.create",
    "northwind",
    target="order 1",
    on_behalf_of=Subject.parse("person:ada"),
)
Decide = Callable[[dict[str, Any]], bool]


def specified(decide: Decide, **context: Any) -> Callable[[Seen], Said]:
    """A decision point that holds requests to the specification, and decides by `decide`."""

    def answer(seen: Seen) -> Said:
        document = json.loads(seen.body)
        headers = {name.lower(): value for name, value in seen.headers.items()}
        ours = {"X-Request-ID": headers.get("x-request-id", "")}
        if seen.method != "POST" or headers.get("content-type") != "application/json":
            return Said(405)
        if headers.get("authorization") != "Bearer pdp-secret":
            return Said(401)
        asked = document.get("evaluations") if seen.path == ALL else [{}]
        answers = []
        for each in asked:
            whole = {name: value for name, value in document.items() if name != "evaluations"}
            whole |= each
            if not is_evaluation(whole):
                return Said(400)
            answers.append({"decision": decide(whole)} | ({"context": context} if context else {}))
        body = {"evaluations": answers} if seen.path == ALL else answers[0]
        return Said(200, ours, json.dumps(body).encode())

    return answer


def is_evaluation(whole: dict[str, Any]) -> bool:
    """Subject and resource have a type and an ID, the action a name: all of them texts."""
    texts = [
        whole["subject"].get("type"),
        whole["subject"].get("id"),
        whole["resource"].get("type"),
        whole["resource"].get("id"),
        whole["action"].get("name"),
    ]
    return all(isinstance(text, str) and text for text in texts)


@pytest.fixture
def point(side: FarSide) -> DecisionPoint:
    made = DecisionPoint(slug="pdp", name="The bank's PDP", base_url=side.url, timeout_seconds=1.0)
    save_decision_point(made, by=administrator(), changed=(), credential="pdp-secret")
    return made


def test_a_yes_and_its_decision_id(side: FarSide, point: DecisionPoint) -> None:
    side.answers = specified(lambda whole: whole["subject"]["id"] == "bot", id="decision-7")
    said = ask_decision_point("pdp", REQUEST)
    assert (said.finding.passed, said.decision_id) == (True, "decision-7")
    assert [seen.path for seen in side.seen] == [ONE]


def test_the_agent_and_whom_it_acts_for_must_both_be_allowed(
    side: FarSide, point: DecisionPoint
) -> None:
    side.answers = specified(lambda whole: whole["subject"]["type"] == "agent")
    assert not ask_decision_point("pdp", FOR_ADA).finding.passed
    side.answers = specified(lambda _whole: True)
    assert ask_decision_point("pdp", FOR_ADA).finding.passed
    assert [seen.path for seen in side.seen] == [ALL, ALL]


@pytest.mark.parametrize(
    "said",
    [
        Said(fault="drop"),
        Said(fault="hang"),
        Said(fault="trickle"),
        Said(body=b'{"decision": true}', fault="truncate"),
        Said(503, body=b'{"decision": true}'),
        Said(302, {"Location": "/yes"}, b'{"decision": true}'),
        Said(200, body=b"yes"),
        Said(204, body=b""),
        Said(200, body=b'{"decision": false, "decision": true}'),
        Said(200, body=b'{"decision": "true"}'),
        Said(200, body=b"[" * 100_000),
        Said(200, body=b'{"decision": true, "x": "' + b"x" * 2_000_000 + b'"}'),
        Said(200, body=b'{"decision": true, "context": {"obligations": [{"id": "mfa"}]}}'),
    ],
    ids=lambda said: said.fault or f"{said.status}: {said.body.decode()[:20]}",
)
def test_whatever_is_not_a_yes_in_time_is_a_no(
    side: FarSide, point: DecisionPoint, said: Said
) -> None:
    side.answers = lambda _seen: said
    assert not ask_decision_point("pdp", REQUEST).finding.passed
    assert len(side.seen) == 1, "it is asked once, and no redirect is followed"


def test_one_that_is_not_set_up_or_not_there_is_a_no(side: FarSide, point: DecisionPoint) -> None:
    assert not ask_decision_point("other", REQUEST).finding.passed
    side.end()
    assert not ask_decision_point("pdp", REQUEST).finding.passed


def test_its_address_keeps_to_the_rules_of_providers(settings: Any, side: FarSide) -> None:
    settings.ROMULUS_ALLOWED_ADDRESSES = []
    made = DecisionPoint(slug="pdp", name="PDP", base_url=side.url)
    with pytest.raises(InvalidProvider, match="ROMULUS_ALLOWED_ADDRESSES"):
        save_decision_point(made, by=administrator(), changed=())
    made.save()
    assert not ask_decision_point("pdp", REQUEST).finding.passed
    assert side.connections == 0


def test_a_write_is_asked_about_just_before_it_and_a_no_holds_it(
    side: FarSide, point: DecisionPoint, payments: RunningDestination
) -> None:
    side.answers = specified(lambda _whole: True)
    policy(decision_point="pdp")
    run, proposal = proposed()
    answered(proposal, approver())
    side.answers = specified(lambda _whole: False, id="decision-8")
    run = advanced(run)
    assert (run.state, effects(payments)) == ("held", 0)
    row = AuthorisationRecord.objects.filter(asked="write").get()
    assert (row.allowed, row.failed, row.decision_id) == (False, "decision_point", "decision-8")
    assert "The bank's PDP: it says no" in Hold.objects.get(state="open").message


def test_a_yes_lets_the_write_go_with_the_decision_on_record(
    side: FarSide, point: DecisionPoint, payments: RunningDestination
) -> None:
    policy(decision_point="pdp")
    side.answers = specified(lambda _whole: True)
    run, proposal = proposed()
    answered(proposal, approver())
    side.answers = specified(
        lambda whole: whole["resource"]["properties"]["parameters"]["amount"] == 12500,
        id="decision-9",
    )
    assert advanced(run).state == "completed"
    assert effects(payments) == 1
    row = AuthorisationRecord.objects.filter(asked="write").get()
    assert (row.allowed, row.decision_id) == (True, "decision-9")


def test_what_it_would_not_allow_is_not_even_asked_of_people(
    side: FarSide, point: DecisionPoint, payments: RunningDestination
) -> None:
    policy(decision_point="pdp")
    side.answers = specified(lambda _whole: False, id="decision-6")
    run = advanced(started_run("approved_refund"))
    assert (run.state, effects(payments)) == ("held", 0)
    assert "Nobody was asked: The bank's PDP: it says no" in run.failure["message"]
    assert not Proposal.objects.exists()
    row = AuthorisationRecord.objects.get()
    assert (row.asked, row.failed, row.decision_id) == ("proposal", "decision_point", "decision-6")


def test_while_it_does_not_answer_people_are_asked_and_nothing_is_sent(
    side: FarSide, point: DecisionPoint, payments: RunningDestination
) -> None:
    policy(decision_point="pdp")
    side.answers = lambda _seen: Said(503)
    run, proposal = proposed()
    answered(proposal, approver())
    assert (advanced(run).state, effects(payments)) == ("held", 0)
    assert "The bank's PDP: it answered 503" in Hold.objects.get(state="open").message
