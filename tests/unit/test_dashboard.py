"""The provider's own page of a record: an address that can only lead there."""

from __future__ import annotations

import pytest

from reconciliation.core.dashboard import page_of, pattern_problem

PATTERN = "https://dashboard.example.com/test/refunds/{resource}"


@pytest.mark.parametrize(
    "pattern", [PATTERN, "http://10.0.0.5:8080/r?id={resource}", "https://example.com/#/{resource}"]
)
def test_an_address_of_the_web_with_a_place_for_the_id_is_taken(pattern: str) -> None:
    assert pattern_problem(pattern) == ""


@pytest.mark.parametrize(
    "pattern",
    [
        "https://dashboard.example.com/refunds/",
        "javascript:alert('{resource}')",
        "data:text/html,{resource}",
        "//example.com/{resource}",
        "https://{resource}.example.com/",
        "https://{resource}/",
        "https://user:{resource}@example.com/",
        "https://example.com@{resource}/",
        'https://example.com/"onclick="{resource}',
        "https://example.com/ {resource}",
        "https://example.com\n/{resource}",
    ],
)
def test_any_other_is_refused_and_never_linked(pattern: str) -> None:
    assert pattern_problem(pattern) != ""
    assert page_of(pattern, "re_1") == ""


def test_an_id_stays_in_its_place() -> None:
    assert page_of(PATTERN, "re_1") == "https://dashboard.example.com/test/refunds/re_1"
    assert page_of(PATTERN, '../a?b#c"<d') == (
        "https://dashboard.example.com/test/refunds/..%2Fa%3Fb%23c%22%3Cd"
    )
    assert page_of(PATTERN, "") == page_of("", "re_1") == ""
