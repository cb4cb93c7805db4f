"""Rows as text that other programs read: CSV in which nothing can run, and JSON.

A spreadsheet takes a cell that begins with =, +, - or @ for a formula, which may call programs or
send the sheet's contents away; some also after blanks, or in their full-width forms. Text that
begins so, or with a character that ends a cell, gets an apostrophe in front (OWASP, *CSV
injection*); and so does what follows a semicolon, a tab or the end of a line within a text: where
the list separator is a semicolon, a spreadsheet does not see our quotes, and a cell begins there. A
number is written as one, so a negative amount stays an amount.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

Row = Sequence[Any]

FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
ENDS_A_CELL = ("\t", "\r", "\n")
BEGINS_ANOTHER = re.compile(rf"([;\t\r\n][\s\ufeff\u200b\"]*)([{re.escape(''.join(FORMULA))}])")
# So that a spreadsheet takes the file for UTF-8.
MARK = "\ufeff"


def harmless(text: str) -> str:
    """Text as a spreadsheet shows it and never runs it."""
    begins = text.lstrip("\ufeff\u200b \u00a0\u3000")
    risky = begins.startswith(FORMULA) or text.lstrip(" ").startswith(ENDS_A_CELL)
    shown = BEGINS_ANOTHER.sub(r"\1'\2", text)
    return f"'{shown}" if risky else shown


def cell(value: Any) -> str | int | float | Decimal:
    """A value of a CSV row: numbers as they are, times in UTC, everything else harmless text."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return value
        case Decimal():
            return Decimal(f"{value:f}")
        case _:
            return harmless(plain(value))


def plain(value: Any) -> str:
    """Text for what JSON has no form for: times in UTC, IDs, money to its last digit."""
    match value:
        case str():
            return value
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        case UUID() | Decimal():
            return str(value)
        case dict() | list() | tuple():
            return as_json(value)
        case _:
            raise TypeError(f"a {type(value).__name__} has no form as text here")


def as_json(value: Any) -> str:
    return json.dumps(value, default=plain, ensure_ascii=False)


def csv_pieces(names: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """A CSV file (RFC 4180) line by line; each text is quoted, so no reader splits it elsewhere."""
    line = io.StringIO()
    writer = csv.writer(line, quoting=csv.QUOTE_NONNUMERIC)
    yield MARK
    for row in itertools.chain([names], rows):
        writer.writerow([cell(value) for value in row])
        yield line.getvalue()
        line.seek(0)
        line.truncate()


def json_pieces(names: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """A JSON list with an object for each row, one a line."""
    yield "["
    yield from listed(dict(zip(names, row, strict=True)) for row in rows)
    yield "\n]\n"


def listed(objects: Iterable[Any]) -> Iterator[str]:
    """The members of a JSON list, one a line."""
    for place, each in enumerate(objects):
        yield (",\n" if place else "\n") + as_json(each)
