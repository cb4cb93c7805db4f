"""What a person typed to find something, and how well a text fits it."""

from __future__ import annotations

from uuid import UUID

import pytest

from workflows.core.needles import LONGEST, Fit, Needle

PK = UUID("01970a3c-8f2e-7b41-9c3d-5e6f708192a3")


@pytest.mark.parametrize(
    ("typed", "fit"),
    [
        (str(PK), Fit.EXACT),
        (PK.hex.upper(), Fit.EXACT),
        (f" {{{PK}}} ", Fit.EXACT),
        ("8192a3", Fit.ENDS),
        ("…8192A3", Fit.ENDS),
        ("708192a3", Fit.ENDS),
        ("01970a3c-8f", Fit.BEGINS),
        ("192a3", Fit.NOT),  # five characters are too few
        ("8192a4", Fit.NOT),
        (f"{PK}0", Fit.NOT),
        ("order 8192a3", Fit.NOT),
    ],
)
def test_an_id_is_found_by_all_of_it_its_beginning_or_its_end(typed: str, fit: Fit) -> None:
    assert Needle.of(typed).fit_of_id(PK) == fit


@pytest.mark.parametrize(
    ("text", "fit"),
    [("ORD-7", Fit.EXACT), ("ORD-70", Fit.BEGINS), ("ord-7", Fit.NOT), ("x ORD-7", Fit.ENDS)],
)
def test_a_text_fits_whole_or_by_how_it_begins_or_ends(text: str, fit: Fit) -> None:
    assert Needle.of("ORD-7").fit_of(text) == fit


def test_whatever_begins_so_lies_in_the_range_and_nothing_else_does() -> None:
    least, greatest = Needle.of("ORD-7").text_range
    inside = ("ORD-7", "ORD-70", "ORD-7é", "ORD-7\U0001f600")
    assert all(least <= text <= greatest for text in inside)
    assert not any(least <= text <= greatest for text in ("ORD-6z", "ORD-8", "ORD-"))


def test_whatever_ends_so_lies_in_the_range_of_ends_and_nothing_else_does() -> None:
    needle = Needle.of("300é")
    least, greatest = needle.end_range
    inside = ("300é", "order 48300é")
    assert all(least <= text[::-1] <= greatest for text in inside)
    assert not any(least <= text[::-1] <= greatest for text in ("300", "301é", "300éa"))
    assert [needle.fit_of(text) for text in inside] == [Fit.EXACT, Fit.ENDS]


@pytest.mark.parametrize(
    ("typed", "label"),
    [
        ("shop=north", ("shop", "north")),
        ("shop: north", ("shop", "north")),
        ("url=https://example.com/?a=b", ("url", "https://example.com/?a=b")),
        ("north", None),
        ("=north", None),
        ("shop=", None),
    ],
)
def test_a_label_is_typed_with_its_name(typed: str, label: tuple[str, str] | None) -> None:
    assert Needle.of(typed).label == label


def test_what_a_database_cannot_keep_is_left_out_and_what_is_too_long_cut() -> None:
    assert Needle.of("a\0b ").text == "ab"
    assert len(Needle.of("x" * 1000).text) == LONGEST


def test_the_best_of_several_fits_counts() -> None:
    needle = Needle.of("ORD-7")
    named = [("start key", "ORD-70"), ("label order", "ORD-7"), ("empty", "")]
    assert needle.best(PK, named) == (Fit.EXACT, "label order", "ORD-7")
