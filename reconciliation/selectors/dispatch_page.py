"""Which switches are thrown, by whom and why, and what waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, Func, IntegerField, OuterRef, QuerySet
from django.urls import reverse

from reconciliation import access
from reconciliation.core.states import OperationState
from reconciliation.dispatch_pages import ChangePage, DispatchPage, StopRow, WaitingRow
from reconciliation.models import DispatchStop, Operation
from reconciliation.services.dispatch import Scope, mark_of, may_switch, strictest, waiting_for
from workflows.access import visible_runs
from workflows.core.words import who
from workflows.pages import Link
from workflows.together import together

STOPS_SHOWN = 50
WAITING_SHOWN = 10
COUNTED = 1000  # beyond that it says "1,000 or more"


def dispatch_page(user: User) -> DispatchPage:
    """The switches in force that concern what `user` may see."""
    stops = list(access.visible_stops(user).order_by("state", "-at")[:STOPS_SHOWN])
    return DispatchPage(rows=rows_of(stops, user), may_stop=bool(switchable(user)))


def switchable(user: User) -> bool:
    """Whether there is anything that `user` may stop."""
    return may_switch(user, Scope()) or access.switchable_providers(user).exists()


def rows_of(stops: Sequence[DispatchStop], user: User) -> tuple[StopRow, ...]:
    """One query for any number."""
    waits = counts_waiting([scope_of(stop) for stop in stops], user)
    return tuple(row_of(stop, user, number) for stop, number in zip(stops, waits, strict=True))


def scope_of(stop: DispatchStop) -> Scope:
    return Scope(stop.provider, stop.tenant, stop.action)


def row_of(stop: DispatchStop, user: User, waits: int) -> StopRow:
    scope = scope_of(stop)
    return StopRow(
        covers=stop.covers,
        state=stop.state,
        by=who(stop.by),
        at=stop.at,
        until=stop.until,
        reason=stop.reason,
        waits=waits,
        change_url=change_url(scope) if may_switch(user, scope) else "",
    )


def counts_waiting(scopes: Sequence[Scope], user: User) -> Sequence[int]:
    """How many operations wait for each of `scopes`, up to so many as are counted. One query."""
    if not scopes:
        return ()
    counts = [
        Func(
            ArraySubquery(visible_waiting(scope, user).values("pk")[:COUNTED]),
            function="cardinality",
            output_field=IntegerField(),
        )
        for scope in scopes
    ]
    row: Sequence[int] = User.objects.filter(pk=user.pk).values_list(*counts).get()
    return row


def visible_waiting(scope: Scope, user: User) -> QuerySet[Operation]:
    return waiting_for(scope).filter(run__in=visible_runs(user))


def change_url(scope: Scope) -> str:
    named = {
        "provider": scope.provider.slug if scope.provider else "",
        "tenant": scope.tenant.slug if scope.tenant else "",
        "action": scope.action,
    }
    query = urlencode({name: value for name, value in named.items() if value})
    url = reverse("dispatch_change")
    return f"{url}?{query}" if query else url


def change_page(scope: Scope, user: User) -> ChangePage:
    """What a change of `scope` would do, before anything is changed."""
    waiting = visible_waiting(scope, user)
    told = access.visible_stops(user).filter(pk=OuterRef("pk"))
    stands = DispatchStop.objects.filter(**scope.fields()).annotate(told=Exists(told))
    stops, rows = together(stands.order_by("pk")[:1], waiting[:WAITING_SHOWN])
    found = next(iter(stops), None)
    stop = found if found is not None and found.told else None
    said = f"by {who(stop.by)}: {stop.reason}" if stop else ""
    return ChangePage(
        covers=str(scope),
        state=strictest([stop] if stop else []),
        said=said,
        seen=mark_of(found),
        waits=waiting[:COUNTED].count(),
        rows=tuple(waiting_row(operation) for operation in rows),
        per_second=settings.ROMULUS_RELEASE_PER_SECOND,
    )


def waiting_row(operation: Operation) -> WaitingRow:
    sent = operation.state != OperationState.INTENDED
    return WaitingRow(
        operation=Link(operation.summary, reverse("operation", args=[operation.pk])),
        next_move="its outcome is asked for first" if sent else "it is sent for the first time",
        since=operation.created_at,
    )
