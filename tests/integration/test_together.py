"""Lists that are read together are what each of them is alone."""

from __future__ import annotations

from datetime import time
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import (
    Count,
    Exists,
    GenericIPAddressField,
    Model,
    OuterRef,
    QuerySet,
    Subquery,
    Value,
)
from django.db.models.functions import Cast, Length, Now

from reconciliation.models import (
    AuditEntry,
    Channel,
    ContractVersion,
    Hold,
    Provider,
    ReviewQueue,
    Shift,
)
from reconciliation.services.audit import add_entry
from tests.events import delivered, waiting
from tests.factories import many_runs, person, ready_provider
from tests.statements import statements
from workflows.core.states import RunState
from workflows.models import Attempt, Event, Run, Wait
from workflows.together import together

pytestmark = pytest.mark.django_db


def test_each_list_is_what_it_is_alone() -> None:
    rows_of_all_kinds()
    lists: list[QuerySet[Any]] = [
        Hold.objects.select_related("queue", "assignee", "run__tenant").annotate(n=Count("notes")),
        Provider.objects.select_related("contract_version", "default_queue"),
        ContractVersion.objects.order_by("-version")[:2],
        ReviewQueue.objects.all(),
        Shift.objects.select_related("person"),
        Channel.objects.all(),
        AuditEntry.objects.order_by("-seq")[:3],
        Run.objects.defer("input"),
        Event.objects.select_related("source"),
        Wait.objects.all(),
        Attempt.objects.none(),
        Run.objects.filter(pk__in=[]),
        Run.objects.values_list("pk", "created_at", "labels"),
        Run.objects.values("state").annotate(number=Count("pk")),
        ReviewQueue.objects.values_list("second_from", flat=True),
        Run.objects.values_list("pk", "state").union(Wait.objects.values_list("run", "state")),
        Run.objects.values_list("workflow", flat=True).distinct(),
        Run.objects.filter(pk__in=Hold.objects.values("run")[:1]).annotate(
            held=Exists(Hold.objects.filter(run=OuterRef("pk"))),
            said=Subquery(Hold.objects.filter(run=OuterRef("pk")).values("message")[:1]),
        ),
    ]
    with statements() as sent:
        found = together(*lists)
    assert len(sent) == 1
    assert [list(map(told, rows)) for rows in found] == [list(map(told, each)) for each in lists]
    assert sum(map(len, found)) > len(lists)


def test_what_a_list_prefetches_comes_with_it() -> None:
    ready_provider("desk")
    owner = person()
    (queues,) = together(ReviewQueue.objects.prefetch_related("owners"))
    with statements() as sent:
        assert [list(queue.owners.all()) for queue in queues] == [[owner]]
    assert sent == []


def test_what_cannot_be_read_as_a_driver_gives_it_is_refused() -> None:
    """And never given as it comes: a field of no known kind, a column beside those asked for."""
    many_runs(1)
    with pytest.raises(KeyError, match="GenericIPAddressField"):
        together(Run.objects.annotate(at=Cast(Value("127.0.0.1"), GenericIPAddressField())))
    beside = Run.objects.values_list("workflow").order_by(Length("step")).distinct()
    with pytest.raises(ValueError, match="zip"):
        together(beside)


def test_nothing_is_asked_for_nothing() -> None:
    with statements() as sent:
        assert together(Run.objects.none(), Wait.objects.none()) == ([], [])
    assert sent == []


def rows_of_all_kinds() -> None:
    ready_provider("desk")
    queue = ReviewQueue.objects.get()
    ReviewQueue.objects.update(second_from=Decimal("12345678901234.5678"))
    for run in many_runs(2, RunState.HELD):
        Hold.objects.create(run=run, queue=queue, reason="x", message="é “x”", due_at=Now())
    Shift.objects.create(
        queue=queue, person=person(), weekdays="01", starts=time(9), ends=time(17, 30), zone="UTC"
    )
    Channel.objects.create(kind="email", person=person(), address="a@example.com")
    waiting()
    delivered("c-1")
    add_entry("user:1 ada", "looked", "run:1", {"share": 0.1, "whole": 2**50, "none": None})


def told(row: Any) -> Any:
    """A row with all that was read of it and of the rows that came with it."""
    if not isinstance(row, Model):
        return row
    read = {name: value for name, value in vars(row).items() if not name.startswith("_")}
    near = {name: told(other) for name, other in row._state.fields_cache.items()}
    return type(row), {name: plain(value) for name, value in read.items()}, near


def plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value
