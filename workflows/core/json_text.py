"""Reading JSON of others without changing it: numbers stay as exact as they were written."""

from __future__ import annotations

import json
from typing import Any, NoReturn

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class NotJson(ValueError):
    """This is no JSON that means one thing; the message holds nothing of it."""


class Written(float):
    """A number with a point or an exponent that remembers how it was written."""

    text: str

    def __new__(cls, text: str) -> Written:
        made = super().__new__(cls, text)
        made.text = text
        return made


# JMESPath tells what a value is by its type's name; a number is a number to it.
Written.__name__ = "float"


def parse(body: bytes) -> Any:
    """Return what `body` says: UTF-8 whatever a header claims, with or without a byte order mark.

    Raises:
        NotJson: says why, and where.
    """
    try:
        text = body.removeprefix(BYTE_ORDER_MARK).decode()
    except UnicodeDecodeError as error:
        raise NotJson(f"it is not UTF-8 at byte {error.start:,}") from None
    try:
        return json.loads(
            text, object_pairs_hook=once_each, parse_float=Written, parse_constant=no_number
        )
    except NotJson:
        raise
    except json.JSONDecodeError as error:
        raise NotJson(f"it is no JSON at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    except ValueError:  # Python reads no integer of more than some thousand digits
        raise NotJson("it has a number that is too long") from None


def once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two values under one name: the sender may mean the one and we take the other."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotJson("an object in it has one name twice")
    return found


def no_number(_word: str) -> NoReturn:
    raise NotJson("it has NaN or Infinity, which are no JSON")


def exact_text(value: Any) -> str | None:
    """The text of a string or a number, exactly as it was written; None for anything else.

    `-0` is 0, as an integer.
    """
    match value:
        case bool():
            return None
        case str():
            return value
        case Written():
            return value.text
        case int():
            return str(value)
        case float():  # the result of a function in a path
            return repr(value)
        case _:
            return None
