"""Who may see and do what. Objects for a user come from here only; only here is guardian asked.

Rights are held per object, on tenants, providers and review queues. What somebody may not see does
not exist for them: 404, and it is in no list, count or search.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.db.models import Exists, Q, QuerySet
from django.db.models.functions import Now
from django.http import Http404
from guardian.shortcuts import get_objects_for_user, get_users_with_perms

from reconciliation.core import standing
from reconciliation.core.standing import Standing
from reconciliation.core.states import HoldState
from reconciliation.models import (
    AuditEntry,
    DispatchStop,
    Hold,
    Operation,
    Provider,
    ReviewQueue,
)
from workflows.access import visible_runs, visible_tenants
from workflows.services.runs import STARTED

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from workflows.models import Run


def visible_queues(user: User) -> QuerySet[ReviewQueue]:
    queues: QuerySet[ReviewQueue] = get_objects_for_user(
        user, "reconciliation.view_reviewqueue", klass=ReviewQueue
    )
    return queues


PROVIDER_RIGHTS = ("view_provider", "configure", "pause_dispatch")


def visible_providers(user: User) -> QuerySet[Provider]:
    """Those that a person has a right on, or that a queue stands for which they may see."""
    rights = [f"reconciliation.{right}" for right in PROVIDER_RIGHTS]
    own = get_objects_for_user(user, rights, klass=Provider, any_perm=True)
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
    providers: QuerySet[Provider] = get_objects_for_user(
        user, "reconciliation.pause_dispatch", klass=Provider
    )
    return providers


def visible_stops(user: User) -> QuerySet[DispatchStop]:
    """The switches in force that stop something which a person may see: nothing of other tenants
    alone, and nothing for who may see no tenant."""
    tenants = visible_tenants(user)
    in_force = DispatchStop.objects.filter(Q(until=None) | Q(until__gt=Now()))
    visible = Q(tenant__in=tenants) | (Q(tenant=None) & Exists(tenants))
    return in_force.filter(visible).select_related("provider", "tenant")


def visible_holds(user: User) -> QuerySet[Hold]:
    """Holds in the queues that a person may see, of the tenants that they may see.

    A hold that no queue takes is shown to administrators alone, who can set a queue up.
    """
    within = Q(queue__in=visible_queues(user))
    if user.is_superuser:
        within |= Q(queue=None)
    tenants = visible_tenants(user)
    return Hold.objects.filter(within, Q(run__tenant__in=tenants) | Q(event__tenant__in=tenants))


def visible_operations(user: User) -> QuerySet[Operation]:
    return Operation.objects.filter(run__in=visible_runs(user))


def operation_for(user: User, operation: UUID) -> Operation:
    """Raises `Http404` when there is none that this person may see."""
    found = (
        visible_operations(user)
        .select_related(
            "run__tenant",
            "provider__contract_version",
            "provider__default_queue",
            "contract_version",
        )
        .filter(pk=operation)
        .first()
    )
    if found is None:
        raise Http404
    return found


def may_decide(user: User, hold: Hold) -> bool:
    if hold.queue is None:
        return user.is_superuser
    return bool(user.has_perm("reconciliation.decide", hold.queue))


def may_review(user: User, hold: Hold) -> bool:
    """Whether somebody may decide a hold or confirm what others propose on it."""
    return may_decide(user, hold) or (
        hold.queue is not None and has_right(user, "second", hold.queue)
    )


def ensure_may_review(user: User, hold: Hold) -> None:
    """Raises `PermissionDenied`: this person may neither decide this hold nor confirm there."""
    deny("" if may_review(user, hold) else standing.NOT_YOURS)


def has_decider(queue: ReviewQueue) -> bool:
    """Whether one of the queue's owners is active and may decide its holds."""
    deciders = get_users_with_perms(
        queue, only_with_perms_in=["decide"], with_superusers=True, with_group_users=True
    )
    return bool(queue.owners.filter(is_active=True, pk__in=deciders).exists())


def standing_of(user: User, hold: Hold) -> Standing:
    """How `user` stands to a hold, whose run, queue and open proposal come with it."""
    seconds = user.is_superuser if hold.queue is None else has_right(user, "second", hold.queue)
    return Standing(
        decides=may_decide(user, hold),
        seconds=seconds,
        started=hold.run is not None and has_started(user, hold.run),
        proposed=hold.proposal is not None and hold.proposal.by_id == user.pk,
    )


def has_right(user: User, right: str, queue: ReviewQueue) -> bool:
    return bool(user.has_perm(f"reconciliation.{right}", queue))


def has_started(user: User, run: Run) -> bool:
    """Whether a run, or one that it descends from, was started by `user`, as the record says."""
    objects = []
    line: Run | None = run
    while line is not None:
        objects.append(f"run:{line.pk}")
        line = line.parent
    started = AuditEntry.objects.filter(object__in=objects, verb=STARTED)
    return started.filter(actor__startswith=f"user:{user.pk} ").exists()


def why_not_decide(user: User, hold: Hold) -> str:
    """Why this person may not decide or propose; empty when they may."""
    return standing.why_not_decide(standing_of(user, hold))


def ensure_may_decide(user: User, hold: Hold) -> None:
    """Raises `PermissionDenied`: this person may not decide this hold."""
    deny(standing.why_not_decide(standing_of(user, hold)))


def ensure_may_confirm(user: User, hold: Hold) -> None:
    """Raises `PermissionDenied`: this person may neither confirm nor refuse what is proposed."""
    deny(standing.why_not_confirm(standing_of(user, hold)))


def ensure_may_withdraw(user: User, hold: Hold) -> None:
    """Raises `PermissionDenied`: what is proposed is not theirs."""
    deny(standing.why_not_withdraw(standing_of(user, hold)))


def deny(why: str) -> None:
    if why:
        raise PermissionDenied(why)


def other_seconds(user: User, queue: ReviewQueue) -> list[User]:
    """Those beside `user` who may confirm what is proposed in a queue, by name."""
    found = get_users_with_perms(queue, only_with_perms_in=["second"], with_group_users=True)
    others = get_user_model().objects.filter(is_active=True, pk__in=found).exclude(pk=user.pk)
    return list(others.order_by("username"))


def open_holds(user: User) -> QuerySet[Hold]:
    return visible_holds(user).filter(state=HoldState.OPEN)
