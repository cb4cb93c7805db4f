"""Several lists of rows in one statement: a page's parts that do not depend on each other.

Each list stays the queryset that it is, compiled by Django; only the way to the server and back is
shared. PostgreSQL gives the rows of each as JSON, of which the values are read as a driver would
give them, so that models, related rows, annotations and prefetches are made as ever.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet
from django.utils.dateparse import parse_duration

Values = tuple[Any, ...]
Reader = Callable[[Any], Any]

# What a driver gives otherwise than JSON, by the kind of its field.
READERS: dict[str, Reader] = {
    "BinaryField": lambda text: bytes.fromhex(text[2:]),
    "DateField": date.fromisoformat,
    "DateTimeField": datetime.fromisoformat,
    "DecimalField": Decimal,
    "DurationField": parse_duration,
    "FloatField": float,
    "JSONField": lambda value: json.dumps(value, default=float),
    "TimeField": time.fromisoformat,
    "UUIDField": UUID,
}
# What JSON gives as a driver does.
AS_THEY_ARE = (
    *("AutoField", "BigAutoField", "BigIntegerField", "BooleanField", "CharField", "EmailField"),
    *("IntegerField", "PositiveIntegerField", "PositiveSmallIntegerField", "SlugField"),
    *("SmallIntegerField", "TextField", "URLField"),
)


def together(*lists: QuerySet[Any]) -> tuple[list[Any], ...]:
    """Return the rows of each of `lists`, all of one moment, with one statement for all of them.

    What a list prefetches takes its own queries, as ever.
    """
    asked = [Asked(each) for each in lists]
    if not any(each.sql for each in asked):
        return tuple([] for _ in asked)
    parts = ", ".join(each.sql or "NULL" for each in asked)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {parts}", [value for each in asked for value in each.params])
        found = cursor.fetchone() or ()
    return tuple(each.rows(text) for each, text in zip(asked, found, strict=True))


class Asked:
    """A queryset, as a part of the statement."""

    def __init__(self, rows: QuerySet[Any]) -> None:
        self._queryset = rows.all()
        self._compiler = self._queryset.query.get_compiler(rows.db)
        try:
            sql, self.params = self._compiler.as_sql(with_col_aliases=True)
        except EmptyResultSet:  # it knows, without asking, that it has none
            self.sql, self.params = "", ()
        else:
            # As text, so that it is read here, and amounts stay exact.
            self.sql = f"(SELECT json_agg(part)::text FROM ({sql}) part)"  # noqa: S608 (Django's)

    def rows(self, found: str | None) -> list[Any]:
        """What the queryset makes of the rows that were `found`."""
        if found is None:
            return []
        readers = [reader_of(expression) for expression, _, _ in self._compiler.select]
        values = [
            tuple(
                value if value is None else reader(value)
                for reader, value in zip(readers, row.values(), strict=True)
            )
            for row in json.loads(found, parse_float=Decimal)
        ]
        # The compiler, which the queryset is given back, has its answer already.
        compiler: Any = self._compiler
        compiler.execute_sql = lambda *_args, **_options: [values]
        query: Any = self._queryset.query
        query.get_compiler = lambda *_args, **_options: compiler
        return list(self._queryset)


def reader_of(expression: Any) -> Reader:
    field = expression.output_field
    while field.remote_field is not None:
        field = field.target_field
    while isinstance(field, ArrayField):  # of texts and numbers, with which nothing is to be done
        field = field.base_field
    kind = field.get_internal_type()
    return as_it_is if kind in AS_THEY_ARE else READERS[kind]


def as_it_is(value: Any) -> Any:
    return value
