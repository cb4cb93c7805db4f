"""Reading any number of rows in bounded memory: batch by batch, each beginning after the last.

A cursor would hold a transaction for as long as somebody downloads, and pooled connections have
none (`DISABLE_SERVER_SIDE_CURSORS`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet

Row = TypeVar("Row", bound=Model)

BATCH_ROWS = 500


def in_batches(
    rows: QuerySet[Row], *keys: str, limit: int | None = None, size: int = BATCH_ROWS
) -> Iterator[list[Row]]:
    """Yield `rows` in the order of `keys`, which together name one row; "-seq" for descending.

    `limit` is the most rows that are yielded in all. What is added or changed meanwhile is there
    or not, and no row comes twice.
    """
    ordered = rows.order_by(*keys)
    left, after = limit, Q()
    while left is None or left > 0:
        batch = list(ordered.filter(after)[: size if left is None else min(size, left)])
        if not batch:
            return
        yield batch
        if left is not None:
            left -= len(batch)
        after = beyond(batch[-1], keys)


def beyond(row: Model, keys: tuple[str, ...]) -> Q:
    """What comes after `row` in the order of `keys`."""
    where = Q()
    same: dict[str, Any] = {}
    for key in keys:
        name = key.removeprefix("-")
        value: Any = getattr(row, name)
        where |= Q(**same, **{f"{name}__{'lt' if key.startswith('-') else 'gt'}": value})
        same[name] = value
    return where
