"""Paging by name, forwards: a page begins after the name that the one before ended with."""

from __future__ import annotations

from typing import TypeVar

from django.db.models import Model, QuerySet

Row = TypeVar("Row", bound=Model)

PAGE_ROWS = 50


def by_name(rows: QuerySet[Row], field: str, after: str) -> tuple[list[Row], str]:
    """A page of `rows` by their unique `field`, and the name that the next one begins after; empty
    where there is none."""
    if after:
        rows = rows.filter(**{f"{field}__gt": after})
    found = list(rows.order_by(field)[: PAGE_ROWS + 1])
    shown = found[:PAGE_ROWS]
    return shown, str(getattr(shown[-1], field)) if len(found) > PAGE_ROWS else ""
