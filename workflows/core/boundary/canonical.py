"""The one way of writing parameters down (RFC 8785), and how two of them differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import rfc8785

MOST_SHOWN = 200  # characters of a value


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that two actions do not share; None where one of them has none there."""

    path: str
    before: str | None
    after: str | None


def canonical(value: Any) -> bytes:
    """Return the one serialisation of equal values."""
    return rfc8785.dumps(value)


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
        Difference(path, old.get(path), new.get(path))
        for path in sorted({*old, *new})
        if old.get(path) != new.get(path)
    ]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every value inside `value` that holds no other, by its path with dots."""
    match value:
        case dict() if value:
            for name, part in value.items():
                yield from leaves(part, f"{path}.{name}" if path else name)
        case list() if value:
            for place, part in enumerate(value):
                yield from leaves(part, f"{path}[{place}]")
        case str():
            yield path, value[:MOST_SHOWN]
        case _:
            yield path, json.dumps(value)
