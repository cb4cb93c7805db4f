"""Lists of tables with millions of rows: what is not counted, and filters that ask for no table."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest

if TYPE_CHECKING:
    PaginatorBase = Paginator[Any]
else:
    PaginatorBase = Paginator

MOST = 5000  # rows that can be paged through; whoever looks for an older one has its ID


class FirstRows(PaginatorBase):
    """Pages through the first rows alone, and counts no further."""

    most = MOST

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return min(int(rows.order_by()[: MOST + 1].count()), MOST)


def state_filter(states: Iterable[StrEnum], field: str = "state") -> type[admin.SimpleListFilter]:
    """A filter by one of the `states` that there can be; Django's own reads them off all rows."""
    words = [(str(state), str(state).replace("_", " ").capitalize()) for state in states]

    class StateFilter(admin.SimpleListFilter):
        title = field
        parameter_name = field

        def lookups(self, _request: HttpRequest, _model_admin: Any) -> list[tuple[str, str]]:
            return words

        def queryset(self, _request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            return queryset.filter(**{field: self.value()}) if self.value() else queryset

    return StateFilter
