"""Rows by what a person typed: each way over an index, and never more rows than are named here.

What is exactly what was typed is looked for among the rows that the reader may see. What only
begins or ends so is looked for among a bounded number of rows, whoever may see them, so that the
work does not grow with what there is; of these, what the reader may see is found.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from django.db.models import F, JSONField, Lookup, Model, Q, QuerySet
from django.db.models.functions import Collate, Reverse

from workflows.core.needles import Needle
from workflows.models import Run
from workflows.models.ids import LAST, last_of

LOOKED_AT = 2_000  # of each way
FOUND = 200  # rows of one kind that are ranked

Row = TypeVar("Row", bound=Model)


@JSONField.register_lookup
class HasValue(Lookup):
    """Whether one of an object's values is this text; a GIN index finds it."""

    lookup_name = "has_value"
    prepare_rhs = False

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        column, params = self.process_lhs(compiler, connection)
        path = f"$.* ? (@ == {json.dumps(self.rhs)})"
        return f"{column} @? %s::jsonpath", (*params, path)


def by_id(visible: QuerySet[Row], needle: Needle) -> list[QuerySet[Any]]:
    """The rows whose ID is, begins with, or ends with what was typed."""
    if needle.id_range is None:
        return []
    if needle.whole_id is not None:
        return [visible.filter(pk=needle.whole_id).values("pk")]
    rows: QuerySet[Any] = visible.model._default_manager.all()
    # The index has the last characters; whatever was typed beyond them is compared when ranked.
    ends = rows.annotate(end=last_of("pk")).filter(end=needle.digits[-LAST:])
    return [
        rows.filter(pk__range=needle.id_range).order_by("pk").values("pk")[:LOOKED_AT],
        ends.values("pk")[:LOOKED_AT],
    ]


def by_text(
    visible: QuerySet[Any], column: str, needle: Needle, *, key: str = "pk"
) -> list[QuerySet[Any]]:
    """The `key` of the rows whose `column` is, or begins with, what was typed."""
    if not needle.is_long_enough:
        return []
    in_order = Collate(F(column), "C")  # of code points, in which the index is
    same = visible.annotate(text=in_order).filter(text=needle.text)
    begin = (
        # That nothing empty is in the range follows, but not for the planner: the indexes of what
        # is often empty leave it out, and are used where the query says so, too.
        visible.model._default_manager.exclude(**{column: ""})
        .annotate(text=in_order)
        .filter(text__range=needle.text_range)
        .order_by("text")
    )
    return [same.values(key)[:LOOKED_AT], begin.values(key)[:LOOKED_AT]]


def by_end(model: type[Model], column: str, needle: Needle) -> list[QuerySet[Any]]:
    """The rows whose `column` ends with what was typed; for columns that are indexed from there."""
    if not needle.is_long_enough:
        return []
    backward = model._default_manager.annotate(backward=Collate(Reverse(F(column)), "C"))
    ends = backward.filter(backward__range=needle.end_range).order_by("backward")
    return [ends.values("pk")[:LOOKED_AT]]


def by_label(visible: QuerySet[Run], needle: Needle) -> list[QuerySet[Any]]:
    """The runs with a label of this value, or of this name and value."""
    if not needle.is_long_enough:
        return []
    labelled = visible.exclude(labels={})
    ways = [labelled.filter(labels__has_value=needle.text)]
    if needle.label is not None:
        name, value = needle.label
        ways.append(labelled.filter(labels__contains={name: value}))
    return [way.values("pk")[:LOOKED_AT] for way in ways]


def among(visible: QuerySet[Row], ways: Sequence[QuerySet[Any]]) -> QuerySet[Row]:
    """Those of `visible` that one of `ways` leads to, the newest first; none without a way."""
    if not ways:
        return visible.none()
    first, *rest = ways
    keys = first.union(*rest) if rest else first
    return visible.filter(Q(pk__in=keys)).order_by("-pk")[:FOUND]
