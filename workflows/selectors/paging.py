"""Paging by key: a page begins where another ended, so that no page grows slower with depth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Model, QuerySet

Row = TypeVar("Row", bound=Model)

PAGE_ROWS = 50


def as_uuid(text: str) -> UUID | None:
    """The ID in an address; None for none, and for what is no ID."""
    try:
        return UUID(text)
    except ValueError:
        return None


def newest_first(
    rows: QuerySet[Row], before: UUID | None, after: UUID | None, size: int = PAGE_ROWS
) -> tuple[list[Row], bool, bool]:
    """Return a page of `rows` by descending ID, and whether there are newer and older ones.

    `before` asks for what is older than that ID, `after` for what is newer; both for neither.
    """
    if after is not None:
        found = list(rows.filter(pk__gt=after).order_by("pk")[: size + 1])
        return list(reversed(found[:size])), len(found) > size, True
    if before is not None:
        rows = rows.filter(pk__lt=before)
    found = list(rows.order_by("-pk")[: size + 1])
    return found[:size], before is not None, len(found) > size


def address(url: str, query: Mapping[str, str]) -> str:
    """`url` with those of `query` that are set."""
    given = {name: value for name, value in query.items() if value}
    return f"{url}?{urlencode(given)}" if given else url
