"""Before and after on the record, and what never gets there."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from workflows.core.changes import LONGEST, NOT_SHOWN, changes_between


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"name": "A"}, {"name": "A"}, {}),
        ({"name": "A"}, {"name": "B"}, {"name": ["A", "B"]}),
        ({}, {"name": "B"}, {"name": [None, "B"]}),
        ({"due": timedelta(hours=4)}, {"due": None}, {"due": ["4:00:00", None]}),
        ({"owners": ["a"]}, {"owners": ["a", "b"]}, {"owners": [["a"], ["a", "b"]]}),
        (
            {"settings": {"path": "/a", "same": 1}},
            {"settings": {"path": "/b", "same": 1}},
            {"settings.path": ["/a", "/b"]},
        ),
        (
            {"settings": {"header": {"X-Api-Key": "k1"}}},
            {"settings": {"header": {"X-Api-Key": "k2"}}},
            {"settings.header.X-Api-Key": [NOT_SHOWN, NOT_SHOWN]},
        ),
        (
            {"settings": None},
            {"settings": {"secret": "s", "path": "/a"}},
            {"settings": [None, {"secret": NOT_SHOWN, "path": "/a"}]},
        ),
        ({"password": "a"}, {"password": "b"}, {"password": [NOT_SHOWN, NOT_SHOWN]}),
        (
            {"settings": {"headers": {"X-Shop": "k1"}, "cookie": "c"}},
            {"settings": {"headers": {"X-Shop": "k2"}, "cookie": "d"}},
            {
                "settings.headers": [NOT_SHOWN, NOT_SHOWN],
                "settings.cookie": [NOT_SHOWN, NOT_SHOWN],
            },
        ),
    ],
)
def test_what_differs_is_told_by_field(
    before: dict[str, Any], after: dict[str, Any], told: dict[str, Any]
) -> None:
    assert changes_between(before, after) == told


def test_of_what_is_sealed_only_that_it_changed() -> None:
    told = changes_between({"credential": "a"}, {"credential": "b"}, sealed={"credential"})
    assert told == {"credential": [NOT_SHOWN, NOT_SHOWN]}


def test_long_texts_are_cut() -> None:
    (pair,) = changes_between({"text": ""}, {"text": "x" * 10_000}).values()
    assert len(pair[1]) == LONGEST
