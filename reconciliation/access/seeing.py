"""Which objects a person may see, by the rights that they hold on queues, providers and tenants.

What somebody may not see does not exist for them: 404, and it is in no list, count or search.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from uuid import UUID

from django.db.models import Exists, Q, QuerySet
from django.db.models.functions import Now
from django.http import Http404

from reconciliation.core.states import HoldState
from reconciliation.models import Channel, DispatchStop, Hold, Operation, Provider, ReviewQueue
from workflows.access import visible_runs, visible_tenants
from workflows.lookups import ids_in
from workflows.models import Tenant
from workflows.rights import held_on, objects_with

if TYPE_CHECKING:
    from django.contrib.auth.models import User

# What a hold is shown with.
SHOWN_WITH = (
    "run__tenant",
    "event__source",
    "event__tenant",
    "queue",
    "assignee",
    "operation__contract_version",
    "operation__provider",
)


PROVIDER_RIGHTS = ("view_provider", "configure", "pause_dispatch")


def visible_queues(user: User) -> QuerySet[ReviewQueue]:
    return objects_with(user, "reconciliation.view_reviewqueue", ReviewQueue.objects.all())


def visible_providers(user: User) -> QuerySet[Provider]:
    """Those that a person has a right on, or that a queue stands for which they may see."""
    rights = [f"reconciliation.{right}" for right in PROVIDER_RIGHTS]
    own = objects_with(user, rights, Provider.objects.all())
    queues = visible_queues(user)
    within = Q(pk__in=own) | Q(queues__in=queues) | Q(default_queue__in=queues)
    return Provider.objects.filter(within).distinct()


def provider_for(user: User, slug: str) -> Provider:
    """Raises `Http404` when there is none that this person may see."""
    found = (
        visible_providers(user)
        .select_related("contract_version", "default_queue")
        .filter(slug=slug)
        .first()
    )
    if found is None:
        raise Http404
    return found


def switchable_providers(user: User) -> QuerySet[Provider]:
    """Those whose dispatch a person may turn off and on."""
    return objects_with(user, "reconciliation.pause_dispatch", Provider.objects.all())


def stops_in_force() -> QuerySet[DispatchStop]:
    """The switches that stop something now, whoever may see that."""
    in_force = DispatchStop.objects.filter(Q(until=None) | Q(until__gt=Now()))
    return in_force.select_related("provider", "tenant")


def visible_stops(user: User) -> QuerySet[DispatchStop]:
    """The switches in force that stop something which a person may see: nothing of other tenants
    alone, and nothing for who may see no tenant."""
    tenants = visible_tenants(user)
    visible = Q(tenant__in=tenants) | (Q(tenant=None) & Exists(tenants))
    return stops_in_force().filter(visible)


def visible_holds(user: User) -> QuerySet[Hold]:
    """Holds in the queues that a person may see, of the tenants that they may see.

    A hold that no queue takes is shown to administrators alone, who can set a queue up.
    """
    # By their IDs, which were read already, and not by a question within the question.
    tenants = held_on(user, "workflows.view_tenant", Tenant)
    within = Q() if tenants is None else Q(tenant__pk__among=ids_in(tenants))
    return Hold.objects.filter(within & in_visible_queues(user))


def in_visible_queues(user: User, hold: str = "") -> Q:
    """Whether the queue of a hold, which lies behind `hold`, is one that a person may see; empty
    where each is."""
    queues = held_on(user, "reconciliation.view_reviewqueue", ReviewQueue)
    if queues is not None:
        return Q((f"{hold}queue__pk__among", ids_in(queues)))
    return Q() if user.is_superuser else Q((f"{hold}queue__isnull", False))


def open_holds(user: User) -> QuerySet[Hold]:
    """Those of them that wait for a person."""
    return visible_holds(user).filter(state=HoldState.OPEN)


def hold_for(user: User, hold: UUID) -> Hold:
    """Raises `Http404` when there is none that this person may see."""
    found = visible_holds(user).select_related(*SHOWN_WITH).filter(pk=hold).first()
    if found is None:
        raise Http404
    return found


def seen_by(user: User, holds: Iterable[UUID]) -> frozenset[UUID]:
    """Which of `holds` this person may see; none for a closed account."""
    if not user.is_active:
        return frozenset()
    return frozenset(visible_holds(user).filter(pk__in=holds).values_list("pk", flat=True))


def visible_operations(user: User) -> QuerySet[Operation]:
    return Operation.objects.filter(run__in=visible_runs(user))


def operations_in_full(user: User) -> QuerySet[Operation]:
    """The visible operations with what the page of one is made of."""
    return visible_operations(user).select_related(
        "run__tenant",
        "run__parent",
        "provider__contract_version",
        "provider__default_queue",
        "contract_version",
    )


def operation_for(user: User, operation: UUID) -> Operation:
    """Raises `Http404` when there is none that this person may see."""
    found = operations_in_full(user).filter(pk=operation).first()
    if found is None:
        raise Http404
    return found


def visible_channels(user: User) -> QuerySet[Channel]:
    """The channels that are a person's to see to: their own, and those of the queues they own."""
    if user.is_superuser:
        return Channel.objects.all()
    owned = ReviewQueue.objects.filter(owners=user, pk__in=visible_queues(user))
    return Channel.objects.filter(Q(person=user) | Q(queue__in=owned))
