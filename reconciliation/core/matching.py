"""Whether a provider's record is the effect that was intended, and which field differs if not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Fit(StrEnum):
    MATCH = "match"
    CONFLICT = "conflict"  # it carries our marker and is not what we meant
    NOT_OURS = "not_ours"


@dataclass(frozen=True)
class Intended:
    """What was meant, in the fields that the provider shows."""

    operation: str
    account: str
    region: str
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class Found:
    """A provider's record. A field that the provider does not show is None or absent."""

    resource: str
    operation: str | None = None
    account: str | None = None
    region: str | None = None
    fields: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Difference:
    field: str
    intended: str
    found: str


@dataclass(frozen=True)
class Agreement:
    field: str
    found: str


@dataclass(frozen=True)
class Comparison:
    """How a record fits, in the fields that the provider shows."""

    fit: Fit
    differences: tuple[Difference, ...] = ()
    agreements: tuple[Agreement, ...] = ()


def compare(intended: Intended, found: Found, *, marker_required: bool) -> Comparison:
    """Compare a record with what was intended.

    Args:
        marker_required: a look-up hit counts only if the record itself carries our marker, since
            some providers ignore a filter and return everything. The answer to our own send is
            ours by its connection.
    """
    if found.operation is None:
        if marker_required:
            return Comparison(Fit.NOT_OURS)
    elif found.operation != intended.operation:
        difference = Difference("operation", intended.operation, found.operation)
        fit = Fit.NOT_OURS if marker_required else Fit.CONFLICT
        return Comparison(fit, (difference,))
    compared = seen_beside(intended, found)
    differences = tuple(each for each in compared if each.intended != each.found)
    agreements = tuple(
        Agreement(each.field, each.found) for each in compared if each.intended == each.found
    )
    fit = Fit.CONFLICT if differences else Fit.MATCH
    return Comparison(fit, differences, agreements)


def seen_beside(intended: Intended, found: Found) -> list[Difference]:
    """What was meant beside what the record shows, for each field that it shows."""
    pairs = [
        ("operation", intended.operation, found.operation),
        ("account", intended.account, found.account),
        ("region", intended.region, found.region),
        *((name, value, (found.fields or {}).get(name)) for name, value in intended.fields.items()),
    ]
    return [
        Difference(name, shown(meant), shown(seen))
        for name, meant, seen in pairs
        if seen is not None
    ]


def shown(value: Any) -> str:
    """A value as text, so that 125 and "125" of two serialisations are one."""
    return str(value).lower() if isinstance(value, bool) else str(value)
