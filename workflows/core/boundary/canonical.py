"""The one way of writing parameters down (RFC 8785), and how two of them differ."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import rfc8785

from workflows.core.values import restored

MOST_SHOWN = 2000  # characters of a value
PLAIN_NAME = re.compile(r"[^\s.\[\]\"]+")


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that two actions do not share; None where one of them has none there."""

    path: str
    before: str | None
    after: str | None


def canonical(value: Any) -> bytes:
    """Return the one serialisation of equal values."""
    return rfc8785.dumps(value)


def read_back(written: bytes) -> Any:
    """The value that `canonical` wrote: 125.0 comes back as 125, and as every reader has it."""
    return restored(json.loads(written))


def equal(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: 1 is 1.0, and neither "1" nor true. What has no
    canonical form is equal to nothing."""
    try:
        return canonical(one) == canonical(other)
    except (rfc8785.CanonicalizationError, RecursionError):
        return False


def action_of(action: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What a digest is made of: the action and everything that is sent for it."""
    return {"action": action, "parameters": dict(parameters)}


def amount_text(amount: Decimal | None) -> str:
    """One text for equal amounts: 125, 125.0 and 125.0000 are the same money."""
    if amount is None:
        return ""
    return f"{amount:f}".rstrip("0").rstrip(".") if "." in f"{amount:f}" else f"{amount:f}"


def differences(before: Any, after: Any) -> list[Difference]:
    """Return what `after` has otherwise than `before`, by path, in the order of their paths."""
    old, new = dict(leaves(before)), dict(leaves(after))
    return [
        Difference(
            path,
            shown(old[path]) if path in old else None,
            shown(new[path]) if path in new else None,
        )
        for path in sorted({*old, *new})
        if path not in old or path not in new or not equal(old[path], new[path])
    ]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value inside `value` that holds no other, by its path with dots. No two have one
    path: a name that would read as more than one stands in quotes."""
    match value:
        case dict() if value:
            for name, part in value.items():
                plain = PLAIN_NAME.fullmatch(name) and name.isprintable()
                said = f".{name}" if plain else json.dumps([name])
                yield from leaves(part, f"{path}{said}".removeprefix("."))
        case list() if value:
            for place, part in enumerate(value):
                yield from leaves(part, f"{path}[{place}]")
        case _:
            yield path, value


def shown(value: Any) -> str:
    """A value for people to read before they answer for it: whole up to a bound that is told, and
    never mistaken for another. A text that looks like a number, or holds what is not seen (a mark
    that turns the direction of writing, a blank of no width), stands as JSON writes it."""
    plain = isinstance(value, str) and value.isprintable() and value and not reads_as_json(value)
    text = value if plain else json.dumps(value, ensure_ascii=False)
    seen = "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)
    more = len(seen) - MOST_SHOWN
    return seen if more <= 0 else f"{seen[:MOST_SHOWN]}… and {more:,} characters more"


def reads_as_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
