"""Turning dispatch on, to pause, or off: new writes stop at once, nothing else (promise P13).

Everything may be stopped, or what one provider, tenant or action covers, or any of these together;
the strictest switch counts. Whoever throws one takes the switch's lock for himself; a send that is
about to begin shares it. So whoever reads "off" sees every send that may still be on its way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.db.models import Case, Q, QuerySet, When
from django.db.models.functions import Now

from reconciliation.core.errors import InvalidDecision
from reconciliation.core.facts import Dispatch, WaitReason
from reconciliation.core.states import OperationState
from reconciliation.models import DispatchStop, Operation, Provider
from reconciliation.models.dispatch import covered
from reconciliation.services.audit import actor_of, add_entry
from reconciliation.services.telling import tell_dispatch
from workflows.core.states import RunState
from workflows.core.words import read_length
from workflows.failpoints import failpoint
from workflows.models import Tenant
from workflows.rights import holds, holds_everywhere
from workflows.services.clock import database_now
from workflows.services.policies import share_write_lock, take_write_lock

log = structlog.get_logger(__name__)

MIN_REASON, MAX_REASON = 10, 1000  # characters
PARKED = (OperationState.INTENDED, OperationState.UNKNOWN)
BATCH = 100
LONGEST_SUBJECT = 200  # that the audit record keeps; what is cut off stands in the entry's detail


@dataclass(frozen=True)
class Scope:
    """What a switch covers; what is left out covers any."""

    provider: Provider | None = None
    tenant: Tenant | None = None
    action: str = ""

    def __str__(self) -> str:
        return covered(self.provider, self.tenant, self.action)

    @property
    def subject(self) -> str:
        """How the audit record names it."""
        named = [f"provider:{self.provider.slug}"] if self.provider else []
        named += [f"tenant:{self.tenant.pk}"] if self.tenant else []
        named += [f"action:{self.action}"] if self.action else []
        return " ".join(named)[:LONGEST_SUBJECT] or "everything"

    def fields(self) -> dict[str, Any]:
        return {"provider": self.provider, "tenant": self.tenant, "action": self.action}

    def operations(self) -> QuerySet[Operation]:
        """The operations that it covers."""
        found = Operation.objects.all()
        if self.provider:
            found = found.filter(provider=self.provider)
        if self.tenant:
            found = found.filter(run__tenant=self.tenant)
        return found.filter(action=self.action) if self.action else found


# --- what is stopped --------------------------------------------------------------------------


def stops_over(provider: UUID, tenant: UUID, action: str) -> QuerySet[DispatchStop]:
    """The switches in force over an operation, the strictest first."""
    return stops_in(tenant, [provider]).filter(Q(action="") | Q(action=action))


def stops_in(tenant: UUID, providers: Any) -> QuerySet[DispatchStop]:
    """Those over any action of a tenant at any of `providers`, IDs or a query for them."""
    stops = DispatchStop.objects.select_related("provider", "tenant").filter(
        Q(provider=None) | Q(provider__in=providers),
        Q(tenant=None) | Q(tenant=tenant),
        Q(until=None) | Q(until__gt=Now()),
    )
    return stops.order_by(Case(When(state=Dispatch.OFF, then=0), default=1), "at")


def stops_of(operation: Operation) -> QuerySet[DispatchStop]:
    return stops_over(operation.provider_id, operation.run.tenant_id, operation.action)


def dispatch_of(operation: Operation) -> Dispatch:
    """Whether something may be sent for `operation`, as far as switches say."""
    return strictest(list(stops_of(operation)))


def strictest(stops: Sequence[DispatchStop]) -> Dispatch:
    return Dispatch(stops[0].state) if stops else Dispatch.ON


def dispatch_now(operation: Operation) -> Dispatch:
    """As `dispatch_of`, in the caller's transaction and at the last moment: a switch that is being
    thrown is waited for, and one that is thrown after it waits for this transaction."""
    share_write_lock()
    return dispatch_of(operation)


# --- throwing a switch ------------------------------------------------------------------------


def set_dispatch(
    scope: Scope | Provider,
    state: Dispatch,
    by: User,
    reason: str,
    *,
    until: datetime | None = None,
    seen: str | None = None,
) -> bool:
    """Set what is sent from now on of what `scope` covers; False when it was so already.

    A send that has begun goes on; the next one asks again. When dispatch is turned on, whatever
    waited for that is looked at, some each second: its outcome is asked for before anything is
    sent.

    Args:
        scope: what it covers; a provider stands for itself.
        until: when a pause ends by itself, by the database's clock.
        seen: the stop that the form was shown with, as `mark_of` has it; None: there was no form.

    Raises:
        PermissionDenied: this person may not turn this off and on.
        InvalidDecision: the reason is missing or too long, the end lies in the past, or somebody
            has set another stop since the form was shown, which nobody ends unread.
    """
    scope = Scope(scope) if isinstance(scope, Provider) else scope
    if not may_switch(by, scope):
        raise PermissionDenied(f"You may not turn dispatch of {scope} off and on.")
    reason = reason.strip()
    if read_length(reason) < MIN_REASON or len(reason) > MAX_REASON:
        raise InvalidDecision(
            "reason", f"Write a reason of {MIN_REASON} to {MAX_REASON:,} characters."
        )
    if until is not None and (state is Dispatch.ON or until <= database_now()):
        raise InvalidDecision("until", "Name a time to come, and only for a pause.")
    failpoint("before_switch")
    with transaction.atomic():
        take_write_lock()
        ensure_seen(scope, seen)
        switched = switch(scope, state, actor_of(by), reason, until)
    failpoint("after_switch")
    return switched


def may_switch(user: User, scope: Scope) -> bool:
    """Who may stop a provider may stop parts of it; everything else needs the right for all."""
    right = "reconciliation.pause_dispatch"
    return holds_everywhere(user, right, Provider) or (
        scope.provider is not None and holds(user, right, scope.provider)
    )


def stop_of(scope: Scope) -> DispatchStop | None:
    """The switch of this very scope, also one whose time is over and that is still to be ended."""
    return DispatchStop.objects.filter(**scope.fields()).first()


def mark_of(stop: DispatchStop | None) -> str:
    """Which stop, set when: what a form carries of the one that it was shown with."""
    return f"{stop.pk.hex}.{stop.at:%Y%m%d%H%M%S%f}" if stop else ""


def ensure_seen(scope: Scope, seen: str | None) -> None:
    """Raises `InvalidDecision`: a stop stands there that was not `seen`."""
    stop = stop_of(scope)
    if stop is not None and seen is not None and seen != mark_of(stop):
        raise InvalidDecision(
            "state",
            "Somebody has set this switch since you opened the form, and nothing was changed. It "
            "is shown as it is now: read it, then set it if you still mean it.",
        )


def switch(scope: Scope, state: Dispatch, by: str, reason: str, until: datetime | None) -> bool:
    """In a transaction that has the lock of writes."""
    stop = stop_of(scope)
    before = Dispatch(stop.state) if stop else Dispatch.ON
    if before is state and (stop is None or stop.until == until):
        return False
    detail: dict[str, Any] = {"from": before, "to": str(state), "reason": reason}
    if len(scope.subject) == LONGEST_SUBJECT:
        detail["covers"] = str(scope)
    if state is Dispatch.ON:
        DispatchStop.objects.filter(**scope.fields()).delete()
        release(scope)
    else:
        changes = {"state": state, "by": by, "reason": reason, "at": Now(), "until": until}
        DispatchStop.objects.update_or_create(**scope.fields(), defaults=changes)
        if until is not None:
            detail["until"] = until.isoformat()
    entry = add_entry(by, "set dispatch", scope.subject, detail)
    tenant = str(scope.tenant.pk) if scope.tenant else ""
    said = {"covers": str(scope), "tenant": tenant, "by": by, "to": str(state), "reason": reason}
    tell_dispatch(entry.seq, scope.provider, said)
    log.info("dispatch.set", scope=scope.subject, state=str(state))
    return True


def end_stops() -> int:
    """A duty of the sweep: end the pauses whose time is over."""
    due = DispatchStop.objects.filter(until__lte=Now())
    return sum(end_stop(pk) for pk in due.values_list("pk", flat=True)[:BATCH])


def end_stop(pk: UUID) -> bool:
    failpoint("before_switch")
    with transaction.atomic():
        take_write_lock()
        stop = DispatchStop.objects.filter(pk=pk, until__lte=Now()).first()
        if stop is None:
            return False
        scope = Scope(stop.provider, stop.tenant, stop.action)
        switch(scope, Dispatch.ON, "system", "Its time was over.", None)
    failpoint("after_switch")
    return True


# --- what waits -------------------------------------------------------------------------------


def waiting_for(scope: Scope) -> QuerySet[Operation]:
    """The operations under `scope` that wait for dispatch alone: what would be looked at, and sent
    where nothing settles it, if dispatch were turned on. The oldest first."""
    return (
        scope.operations()
        .filter(
            state__in=PARKED,
            run__state=RunState.WAITING,
            run__failure__reason=WaitReason.DISPATCH,
        )
        .order_by("created_at", "pk")
    )


def release(scope: Scope) -> None:
    """Let the sweep look at what waited, so many a second: the provider may just have come back.

    All of it is locked first, in the order of the IDs, as whoever ends many runs does: of two who
    meet neither waits for the other one in a circle. What was settled or held meanwhile stays so.
    """
    waiting = waiting_for(scope).order_by("pk").only("created_at")
    sql, parameters = waiting.select_for_update(of=("self",), no_key=True).query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            UPDATE reconciliation_operation o
            SET due_at = statement_timestamp() + (w.place - 1) / %s * interval '1 second'
            FROM (
                SELECT id, row_number() OVER (ORDER BY created_at, id)::float8 AS place
                FROM ({sql}) AS locked
            ) AS w
            WHERE o.id = w.id
            """,  # noqa: S608 (Django's own statement)
            [float(settings.ROMULUS_RELEASE_PER_SECOND), *parameters],
        )
