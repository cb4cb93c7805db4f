"""What counts as close to what a wait expects, and how two texts are cut to be compared."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from workflows.core.near_misses import (
    Expected,
    Nearness,
    Said,
    fits,
    likely,
    near_misses,
    nearness,
    side_by_side,
    side_by_side_types,
)

NOW = datetime(2026, 3, 10, 3, 0, 12, tzinfo=UTC)
WANTED = Expected(("charge.refunded", "charge.failed"), "PO-10077")


def said(
    correlation: str, type: str = "charge.refunded", *, rejected: bool = False, age: float = 0
) -> Said:
    return Said(uuid4(), type, correlation, NOW - timedelta(seconds=age), rejected=rejected)


@pytest.mark.parametrize(
    ("correlation", "near"),
    [
        ("po-10077", Nearness.CASE),
        ("PO-10077 ", Nearness.SPACE),
        ("PO- 10077", Nearness.SPACE),
        ("PO-10077\n", Nearness.SPACE),
        ("PO-\u200b10077", Nearness.SPACE),  # a space that is not seen
        ("\u00a0po-10077", Nearness.SPACE),
        ("10077", Nearness.PREFIX),
        ("PO-10077/1", Nearness.PREFIX),
        ("order PO-10077", Nearness.PREFIX),
        ("PO10077", Nearness.CHARACTER),
        ("PO_10077", Nearness.CHARACTER),
        ("PO-100777", Nearness.PREFIX),
        ("PO-100077", Nearness.CHARACTER),
        ("OP-10077", Nearness.CHARACTER),  # neighbours that changed places
        ("PO-10177", Nearness.CHARACTER),
        ("P0-10078", None),
        ("PO-99", None),
        ("PO", None),  # too short to tell anything
        ("", None),
    ],
)
def test_a_correlation_is_close_for_one_of_the_known_reasons(
    correlation: str, near: Nearness | None
) -> None:
    assert nearness(WANTED, said(correlation)) is near


def test_the_same_correlation_of_another_type_is_close_and_nothing_else_of_that_type() -> None:
    assert nearness(WANTED, said("PO-10077", "charge.updated")) is Nearness.TYPE
    assert nearness(WANTED, said("po-10077", "charge.updated")) is None
    assert nearness(Expected(("a",), ""), said("", "b")) is None


def test_what_is_too_short_is_not_close_to_all_that_is_as_short() -> None:
    assert nearness(Expected(("a",), "7"), said("8", "a")) is None
    assert nearness(Expected(("a",), "AB"), said("AC", "a")) is None
    assert nearness(Expected(("a",), "ABC"), said("ABD", "a")) is Nearness.CHARACTER


def test_what_fits_is_not_near_unless_it_was_rejected() -> None:
    assert fits(WANTED, said("PO-10077", "charge.failed"))
    assert nearness(WANTED, said("PO-10077")) is None
    assert nearness(WANTED, said("PO-10077", rejected=True)) is Nearness.REJECTED


def test_exact_text_counts_whatever_it_looks_like() -> None:
    """Composed and decomposed letters, and big numbers, are other texts: close, never the same."""
    assert not fits(Expected(("a",), "caf\u00e9"), said("cafe\u0301", "a"))
    big = Expected(("a",), "9007199254740993")
    assert nearness(big, said("9007199254740992", "a")) is Nearness.CHARACTER


def test_the_closest_and_newest_come_first_and_not_too_many() -> None:
    events = [
        said("PO-10078", age=1),
        said("po-10077", age=50),
        said("PO-10077", "other", age=2),
        said("po-10077", age=5),
        said("elsewhere"),
    ]
    found = near_misses(WANTED, events, 3)
    assert [(miss.nearness, miss.event) for miss in found] == [
        (Nearness.CASE, events[3]),
        (Nearness.CASE, events[1]),
        (Nearness.TYPE, events[2]),
    ]


def test_every_nearness_has_a_sentence() -> None:
    assert all(each.sentence.endswith(".") for each in Nearness)


def test_what_is_looked_up_by_itself_is_close_or_the_same() -> None:
    for variant in likely(" PO-10077"):
        expected = Expected(("a",), " PO-10077")
        assert variant == " PO-10077" or nearness(expected, said(variant, "a")) is not None


# --- side by side -----------------------------------------------------------------------------


def test_differing_characters_stand_by_themselves() -> None:
    left, right = side_by_side("PO-10077", "PO10077")
    assert [(piece.text, piece.kind) for piece in left] == [
        ("PO", "same"),
        ("-", "other"),
        ("10077", "same"),
    ]
    assert [(piece.text, piece.kind) for piece in right] == [
        ("PO", "same"),
        ("", "none"),
        ("10077", "same"),
    ]
    assert "".join(piece.text for piece in left) == "PO-10077"


def test_what_is_not_seen_is_named() -> None:
    _, right = side_by_side("48213", "48213\u00a0")
    assert right[-1].named == "no-break space (U+00A0)"
    _, right = side_by_side("48213", "48213 ")
    assert right[-1].named == "space (U+0020)"
    left, _ = side_by_side("A", "\u0410")  # a Cyrillic letter that looks the same
    assert (left[0].named, side_by_side("A", "\u0410")[1][0].named) == (
        "",
        "cyrillic capital letter a (U+0410)",
    )


def test_a_type_is_compared_with_the_most_similar_of_those_expected() -> None:
    left, _ = side_by_side_types(("charge.refunded", "invoice.paid"), "invoice.payed")
    assert "".join(piece.text for piece in left) == "invoice.paid"
