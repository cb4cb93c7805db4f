"""Rows as CSV and JSON: nothing in them runs, and numbers stay numbers."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from workflows.core.tables import csv_pieces, json_pieces

AT = datetime(2026, 3, 10, 4, 12, 40, 18, tzinfo=timezone(timedelta(hours=1)))


def read(*values: Any) -> list[Any]:
    """The row as a spreadsheet reads it: what is not quoted is a number."""
    names = [f"c{place}" for place in range(len(values))]
    text = "".join(csv_pieces(names, [values]))
    assert text.startswith("\ufeff")
    reader = csv.reader(io.StringIO(text[1:], newline=""), quoting=csv.QUOTE_NONNUMERIC)
    assert next(reader) == names
    (row,) = reader
    return row


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        " =1+1",
        "\u3000=1+1",
        "\ufeff=1+1",
        "\uff1d1+1",
        "\uff0b1",
        "\uff0d1",
        "\uff20SUM(A1)",
        '=HYPERLINK("http://evil.example","ORD-1")',
        "=cmd|' /C calc'!A0",
    ],
)
def test_no_text_is_a_formula(text: str) -> None:
    assert read(text) == [f"'{text}"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\t=1+1", "'\t'=1+1"),
        ("\r=1+1", "'\r'=1+1"),
        ("\n=1+1", "'\n'=1+1"),
        ("\tx", "'\tx"),
        ("x;=1+1", "x;'=1+1"),
        ('x; "=1+1', "x; \"'=1+1"),
        ("x\r\n@SUM(A1)", "x\r\n'@SUM(A1)"),
        ("x;\t\uff1d1;-2", "x;\t'\uff1d1;'-2"),
    ],
)
def test_nor_is_one_where_cells_end_at_a_semicolon(text: str, shown: str) -> None:
    """As in Excel where a comma is the decimal mark: our quotes are no quotes there."""
    assert read(text) == [shown]


@pytest.mark.parametrize(
    "text",
    ["ORD-1", 'a "b", c', "a\r\nb", "a=b", "5", "", "Ünïcode €", "a; b-c", "one\ntwo"],
)
def test_other_text_is_as_it_was(text: str) -> None:
    assert read(text) == [text]


@pytest.mark.parametrize(
    ("number", "written"),
    [(-5, -5), (Decimal("-1240.5000"), -1240.5), (Decimal("1E+3"), 1000), (0, 0), (1.5, 1.5)],
)
def test_numbers_stay_numbers_negative_ones_too(number: Any, written: float) -> None:
    (value,) = read(number)
    assert isinstance(value, float)
    assert value == written


def test_times_are_in_utc_and_everything_has_a_form() -> None:
    pk = UUID(int=7)
    assert read(AT, pk, None, True, {"a": [1]}) == [
        "2026-03-10T03:12:40.000018Z",
        str(pk),
        "",
        "yes",
        '{"a": [1]}',
    ]


def test_json_keeps_money_to_its_last_digit() -> None:
    rows = [(Decimal("-1240.10"), AT, "=1+1"), (None, None, "")]
    assert json.loads("".join(json_pieces(("amount", "at", "text"), rows))) == [
        {"amount": "-1240.10", "at": "2026-03-10T03:12:40.000018Z", "text": "=1+1"},
        {"amount": None, "at": None, "text": ""},
    ]
    assert json.loads("".join(json_pieces(("a",), []))) == []
