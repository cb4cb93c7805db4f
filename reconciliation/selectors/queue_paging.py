"""Paging the queue by key, for each way to sort it: a page begins where another ended.

What has no amount, or no protection that could end, comes last. Rows of one value are told apart
by their ID. Each order has an index over open holds (`models.hold`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from django.db.models import F, Q, QuerySet
from django.db.models.expressions import OrderBy

from reconciliation.core.queue_views import MOST_DIGITS, Sort
from reconciliation.models import Hold
from workflows.selectors.paging import as_uuid

Place = tuple[Any, UUID]
"""Where a row stands in the list: the value that sorts it, None for none, and its ID."""

# Half of what other lists show: a case is read, and takes three lines, where a run takes one.
ROWS = 25
NONE = "none"
TIME = "%Y%m%dT%H%M%S.%f"


@dataclass(frozen=True)
class Key:
    """A column that the queue is sorted by."""

    field: str
    written: Callable[[Any], str]
    read: Callable[[str], Any]
    largest_first: bool = False

    def order(self, *, backwards: bool) -> tuple[OrderBy, str]:
        column = F(self.field)
        if backwards:
            last = column.asc(nulls_first=True) if self.largest_first else None
            return (last or column.desc(nulls_first=True), "-pk")
        first = column.desc(nulls_last=True) if self.largest_first else None
        return (first or column.asc(nulls_last=True), "pk")

    def behind(self, place: Place) -> Q:
        value, pk = place
        if value is None:
            return Q((self.field, None), pk__gt=pk)
        beyond = Q((f"{self.field}__{'lt' if self.largest_first else 'gt'}", value))
        return beyond | Q((self.field, value), pk__gt=pk) | Q((self.field, None))

    def ahead(self, place: Place) -> Q:
        value, pk = place
        if value is None:
            return Q((f"{self.field}__isnull", False)) | Q((self.field, None), pk__lt=pk)
        before = Q((f"{self.field}__{'gt' if self.largest_first else 'lt'}", value))
        return before | Q((self.field, value), pk__lt=pk)


def time_written(at: datetime) -> str:
    return at.astimezone(UTC).strftime(TIME)


def time_read(text: str) -> datetime:
    return datetime.strptime(text, TIME).replace(tzinfo=UTC)


def amount_read(text: str) -> Decimal:
    number = Decimal(text)
    if not number.is_finite() or number.adjusted() > MOST_DIGITS:
        raise InvalidOperation
    return number


KEYS = {
    Sort.DUE: Key("due_at", time_written, time_read),
    Sort.AMOUNT: Key("amount", str, amount_read, largest_first=True),
    Sort.WINDOW: Key("window_ends_at", time_written, time_read),
    Sort.AGE: Key("opened_at", time_written, time_read),
}


def place_of(hold: Hold, sort: Sort) -> str:
    key = KEYS[sort]
    value = getattr(hold, key.field)
    return f"{NONE if value is None else key.written(value)}-{hold.pk.hex}"


def place(text: str, sort: Sort) -> Place | None:
    """The place in an address; None for what is none of this order."""
    value, _, hold = text.rpartition("-")
    pk = as_uuid(hold)
    if pk is None or not value:
        return None
    if value == NONE:
        return (None, pk)
    try:
        return (KEYS[sort].read(value), pk)
    except (ValueError, InvalidOperation):
        return None


def rows_at(
    holds: QuerySet[Hold],
    sort: Sort,
    before: Place | None,
    after: Place | None,
) -> tuple[list[Hold], bool, bool]:
    """A page of `holds`, and whether there are rows ahead of it and behind it."""
    key = KEYS[sort]
    if before is not None:
        ahead = holds.filter(key.ahead(before)).order_by(*key.order(backwards=True))
        found = list(ahead[: ROWS + 1])
        return found[:ROWS][::-1], len(found) > ROWS, True
    if after is not None:
        holds = holds.filter(key.behind(after))
    found = list(holds.order_by(*key.order(backwards=False))[: ROWS + 1])
    return found[:ROWS], after is not None, len(found) > ROWS
