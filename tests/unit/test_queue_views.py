"""How the queue is looked at lies in the address, and comes back from there as it was."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

import pytest

from reconciliation.core.facts import HoldReason
from reconciliation.core.queue_views import UNKNOWN_REASONS, Looked, Sort, Tab, View, looked_at

ALL = Looked(
    tab=Tab.TEAM,
    view=View.OVERDUE,
    queue="payments",
    provider="pay-1",
    tenant="northwind",
    reason="unguarded",
    assignee="17",
    age="4h",
    amount="1000.5",
    sort=Sort.WINDOW,
)


@pytest.mark.parametrize("looked", [Looked(), ALL, Looked(assignee="nobody"), Looked(tab=Tab.MINE)])
def test_an_address_says_all_of_it_and_nothing_more(looked: Looked) -> None:
    assert looked_at(dict(parse_qsl(urlencode(looked.query())))) == looked


def test_the_whole_queue_needs_no_address() -> None:
    assert Looked().query() == {}
    assert not Looked().filtered
    assert ALL.filtered


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tab", "theirs"),
        ("view", "everything"),
        ("sort", "price"),
        ("queue", "a b"),
        ("queue", "x" * 61),
        ("tenant", "n\x00"),
        ("assignee", "-1"),
        ("assignee", "1234567890"),
        ("assignee", "٣"),
        ("age", "5h"),
        ("amount", "much"),
        ("amount", "-5"),
        ("amount", "NaN"),
        ("amount", "1e999"),
        ("amount", "0"),
    ],
)
def test_what_nobody_offered_counts_as_not_given(name: str, value: str) -> None:
    assert looked_at({name: value}) == Looked()


@pytest.mark.parametrize(
    ("typed", "read"), [("1,000", "1000"), (" 12.50 ", "12.5"), ("1e3", "1000"), ("0.01", "0.01")]
)
def test_an_amount_is_read_as_people_type_it(typed: str, read: str) -> None:
    assert looked_at({"amount": typed}).amount == read


@pytest.mark.parametrize(
    ("looked", "hides"),
    [
        (Looked(), False),
        (Looked(view=View.UNKNOWN), False),
        (Looked(tab=Tab.MINE), True),
        (Looked(tab=Tab.TEAM), True),
        (Looked(tab=Tab.TEAM, view=View.CLOSING), True),
        (Looked(tab=Tab.MINE, view=View.OVERDUE), False),
        (Looked(tab=Tab.MINE, view=View.SNOOZED), False),
    ],
)
def test_only_ones_own_default_lists_hide_what_is_snoozed(looked: Looked, hides: bool) -> None:
    assert looked.hides_snoozed is hides


def test_unknown_are_the_reasons_that_leave_the_outcome_open() -> None:
    assert HoldReason.UNGUARDED in UNKNOWN_REASONS
    assert HoldReason.LOOK_UP_UNAVAILABLE in UNKNOWN_REASONS
    # Here the outcome is known.
    known = (HoldReason.UNREACHABLE, HoldReason.NOT_VERIFIABLE, HoldReason.NOT_READY)
    assert not UNKNOWN_REASONS.intersection(known)
