"""What a contract means for whoever is on call."""

from __future__ import annotations

import pytest

from reconciliation.core.contracts import Contract, Meaning
from reconciliation.core.facts import HoldReason
from reconciliation.core.runbook import as_markdown, possible_holds, questions, span
from reconciliation.services.contracts import shipped

SHIPPED = {contract.slug: contract for contract in shipped()}


@pytest.mark.parametrize("contract", SHIPPED.values(), ids=SHIPPED)
def test_every_contract_has_an_answer_to_every_question(contract: Contract) -> None:
    asked = questions(contract)
    assert len({line.asks for line in asked}) == 7
    assert all(line.answer.endswith(".") and line.so.endswith(".") for line in asked)
    page = as_markdown(contract)
    assert all(text in page for text in (*contract.unverified, *contract.notes))
    assert all(source.title in page for source in contract.sources)


def test_the_two_of_stripe_differ_where_they_promise_differently() -> None:
    first, second = (questions(SHIPPED[slug])[0].answer for slug in ("stripe-v1", "stripe-v2"))
    assert "for 1 day from the first send" in first
    assert "for 30 days from the first send" in second


def test_only_holds_that_can_come_are_named() -> None:
    held = {hold.reason for hold in possible_holds(SHIPPED["email"])}
    assert HoldReason.UNGUARDED in held
    assert not {HoldReason.WINDOW_OVER, HoldReason.KEY_MISMATCH, HoldReason.NOT_VERIFIABLE} & held
    held = {hold.reason for hold in possible_holds(SHIPPED["stripe-v1"])}
    both = HoldReason.WINDOW_OVER_UNASKED
    assert {HoldReason.WINDOW_OVER, HoldReason.KEY_MISMATCH, both} <= held
    assert Meaning.EXISTS not in {rule.means for rule in SHIPPED["stripe-v1"].answers}
    assert HoldReason.ALREADY_EXISTS not in held


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1, "1 s"),
        (90, "90 s"),
        (60, "1 minute"),
        (7200, "2 hours"),
        (86400, "1 day"),
        (0.5, "0.5 s"),
    ],
)
def test_a_time_is_said_in_its_largest_whole_unit(seconds: float, text: str) -> None:
    assert span(seconds) == text
