"""The rule of the audit record's chain: a short way leads from any entry to any earlier one."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciliation.core.chain import Entry, link_hash, route, skip_of

ENTRY = Entry(
    seq=6,
    at="2026-03-10T03:12:40.000018+00:00",
    actor="user:3 ada",
    verb="decided",
    object="operation:1",
    detail={"kind": "applied"},
    salt="5a17",
    previous_hash="a" * 64,
    skip_hash="b" * 64,
)


@given(st.integers(1, 10**7), st.lists(st.integers(1, 10**7), min_size=1, max_size=8))
def test_each_step_of_a_way_is_one_that_an_entry_carries(head: int, wanted: list[int]) -> None:
    shown = [seq for seq in wanted if seq <= head]
    way = route(head, shown)
    assert way[0] == head
    assert set(shown) <= set(way)
    assert all(after in (before - 1, skip_of(before)) for before, after in pairwise(way))
    # Some hundreds for each at the worst, and never in proportion to the record.
    assert len(way) <= 1 + 300 * max(len(shown), 1)


@pytest.mark.parametrize(("seq", "further_back"), [(1, 0), (2, 0), (3, 2), (12, 8), (13, 12)])
def test_an_entry_carries_the_one_with_its_lowest_bit_cleared(seq: int, further_back: int) -> None:
    assert skip_of(seq) == further_back


def test_the_hash_of_an_entry_needs_only_its_content() -> None:
    assert hashlib.sha256(ENTRY.said).hexdigest() == ENTRY.content
    lines = f"6\n{ENTRY.content}\n{'a' * 64}\n{'b' * 64}"
    assert ENTRY.hash == hashlib.sha256(lines.encode()).hexdigest()
    assert ENTRY.hash == link_hash(6, ENTRY.content, "a" * 64, "b" * 64)


def test_what_an_entry_says_is_salted() -> None:
    assert json.loads(ENTRY.said)[-1] == "5a17"
    assert replace(ENTRY, salt="5a18").content != ENTRY.content


def test_an_entry_of_the_first_rule_is_chained_by_all_that_it_says() -> None:
    first = replace(ENTRY, salt="")
    assert first.hash == hashlib.sha256(first.said).hexdigest()
    assert json.loads(first.said)[-1] == "a" * 64
