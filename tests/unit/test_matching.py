"""Whether a provider's record is ours, and which field differs."""

from __future__ import annotations

import pytest

from reconciliation.core.matching import Difference, Fit, Found, Intended, compare

INTENDED = Intended("op-1", "acct_1", "eu", {"amount": 12500, "order": "ORD-1"})


def record(**fields: object) -> Found:
    shown = {"operation": "op-1", "account": "acct_1", "fields": {"amount": 12500}}
    return Found("r_1", **(shown | fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "fit"),
    [
        (record(), Fit.MATCH),
        (record(fields={"amount": "12500"}), Fit.MATCH),  # another serialisation of the same
        (record(operation="op-2"), Fit.NOT_OURS),
        (record(operation=None), Fit.NOT_OURS),  # a filter that was ignored
        (record(account="acct_2"), Fit.CONFLICT),
        (record(region="us"), Fit.CONFLICT),
        (record(fields={"amount": 13000}), Fit.CONFLICT),
        (record(fields={"colour": "red"}), Fit.MATCH),  # shows more, and nothing that differs
    ],
)
def test_a_look_up_hit_counts_only_with_our_marker(found: Found, fit: Fit) -> None:
    assert compare(INTENDED, found, marker_required=True).fit is fit


def test_the_answer_to_our_own_send_needs_no_marker_and_contradicts_with_another() -> None:
    assert compare(INTENDED, record(operation=None), marker_required=False).fit is Fit.MATCH
    assert compare(INTENDED, record(operation="op-2"), marker_required=False).fit is Fit.CONFLICT


def test_it_says_which_field_differs() -> None:
    found = record(account="acct_2", fields={"amount": 13000, "order": "ORD-1"})
    assert compare(INTENDED, found, marker_required=True).differences == (
        Difference("account", "acct_1", "acct_2"),
        Difference("amount", "12500", "13000"),
    )
