"""What is asked of the events page, by whom, and paging over the tenants that they may see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any, TypeVar
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import BooleanField, F, Func, Model, QuerySet
from django.urls import reverse

from workflows.models import EventSource, Tenant

Row = TypeVar("Row", bound=Model)

COUNTED = 10_000  # of what may be many, no more are counted


@dataclass(frozen=True)
class Asked:
    """What is to be listed, as the address says it; what it cannot mean counts as not said.

    Without a `range` nothing is left out: what somebody has to see to may be old.
    """

    view: str = ""
    state: str = ""
    source: str = ""
    before: str = ""
    after: str = ""
    wbefore: str = ""
    wafter: str = ""
    wait: str = ""
    event: str = ""
    range: str = ""
    since: UUID | None = None  # what came before `range` began has a lesser ID

    def query(self, **changes: str) -> dict[str, str]:
        """What keeps the choice, with other places in the list."""
        kept = {"view": self.view, "state": self.state, "source": self.source, "range": self.range}
        return kept | changes


@dataclass(frozen=True)
class Reader:
    """Whose page it is: the tenants they may see, with sources of them, and those whose runs they
    may control."""

    tenants: Sequence[Tenant]
    sources: Sequence[EventSource] = ()
    controlled: frozenset[UUID] = frozenset()
    may_send: bool = False
    zone: tzinfo = UTC


def here() -> str:
    return reverse("events")


def newest_of(
    parts: Sequence[QuerySet[Row]],
    whole: QuerySet[Row],
    before: UUID | None,
    after: UUID | None,
    size: int,
) -> tuple[list[Row], bool, bool]:
    """As `paging.newest_first`, of `parts` that are each read from an index of their own.

    One query: of `whole`, those that are in the page of one of the parts.
    """
    if not parts:
        return [], False, False
    narrowed, order = parts, "-pk"
    if after is not None:
        narrowed, order = [part.filter(pk__gt=after) for part in parts], "pk"
    elif before is not None:
        narrowed = [part.filter(pk__lt=before) for part in parts]
    ids = united([part.order_by(order)[: size + 1] for part in narrowed])
    found = list(whole.filter(is_among(ids)).order_by(order)[: size + 1])
    more, rows = len(found) > size, found[:size]
    if after is not None:
        rows.reverse()
        return rows, more, True
    return rows, before is not None, more


def is_among(ids: QuerySet[Any, Any]) -> Func:
    """That a row is one of `ids`, which are read first: as an array no planner turns it about."""
    among = ArraySubquery(ids)
    return Func(
        F("pk"),
        among,
        template="(%(expressions)s))",
        arg_joiner=" = ANY (",
        output_field=BooleanField(),
    )


def united(parts: Sequence[QuerySet[Row]]) -> QuerySet[Row, Any]:
    first, *others = [part.values("pk") for part in parts]
    return first.union(*others, all=True) if others else first
