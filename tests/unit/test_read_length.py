"""A reason that is asked for is one that somebody can read."""

from __future__ import annotations

import pytest

from workflows.core.words import read_length

TOLD = "Told me by telephone"


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("", 0),
        (TOLD, len(TOLD)),
        (f"  {TOLD}\n", len(TOLD)),
        ("ein Rückruf: 返金済み", 17),
        ("a" + 30 * " " + "b", 3),
        (30 * "\u200b", 0),
        (30 * "\u2060\u00ad\ufeff\u202e", 0),
        (30 * "\u3164", 0),
        (30 * "\u2800", 0),
        ("\u202e" + TOLD, len(TOLD)),
    ],
)
def test_what_nobody_sees_is_no_part_of_it(text: str, length: int) -> None:
    assert read_length(text) == length
