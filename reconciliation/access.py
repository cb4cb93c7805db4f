"""Who may see and do what. Objects for a user come from here only.

Rights are held per object, on tenants, providers and review queues. What somebody may not see does
not exist for them: 404, and it is in no list, count or search.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet, TextField
from django.db.models.functions import Cast, Now
from django.http import Http404
from django.utils import timezone
from guardian.models import GroupObjectPermission, UserObjectPermission
from guardian.shortcuts import get_users_with_perms

from reconciliation.core import standing
from reconciliation.core.standing import Standing
from reconciliation.core.states import HoldState
from reconciliation.models import (
    Channel,
    DispatchStop,
    Hold,
    Operation,
    Provider,
    ReviewQueue,
)
from workflows.access import visible_runs, visible_tenants
from workflows.core.proposals import Answer
from workflows.models import Tenant
from workflows.rights import held_on, holds, objects_with
from workflows.services.runs import STARTED

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


def visible_queues(user: User) -> QuerySet[ReviewQueue]:
    return objects_with(user, "reconciliation.view_reviewqueue", ReviewQueue.objects.all())


PROVIDER_RIGHTS = ("view_provider", "configure", "pause_dispatch")


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
    queues = held_on(user, "reconciliation.view_reviewqueue", ReviewQueue)
    tenants = held_on(user, "workflows.view_tenant", Tenant)
    within = Q() if tenants is None else Q(tenant__in=tenants)
    if queues is not None:
        within &= Q(queue__in=queues)
    elif not user.is_superuser:
        within &= Q(queue__isnull=False)
    return Hold.objects.filter(within)


def visible_operations(user: User) -> QuerySet[Operation]:
    return Operation.objects.filter(run__in=visible_runs(user))


def operations_in_full(user: User) -> QuerySet[Operation]:
    """The visible operations with what the page of one is made of."""
    return visible_operations(user).select_related(
        "run__tenant",
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


def is_administrator(user: User) -> bool:
    """Who sees to what no queue takes; a closed account is nobody's."""
    return user.is_superuser and user.is_active


def may_decide(user: User, hold: Hold) -> bool:
    if hold.queue is None:
        return is_administrator(user)
    return holds(user, "reconciliation.decide", hold.queue)


def may_assign(user: User, hold: Hold) -> bool:
    if hold.queue is None:
        return is_administrator(user)
    return holds(user, "reconciliation.assign", hold.queue)


def with_right(user: User, right: str) -> QuerySet[ReviewQueue]:
    return objects_with(user, f"reconciliation.{right}", ReviewQueue.objects.all())


def team_queues(user: User) -> QuerySet[ReviewQueue]:
    """Those whose holds are a person's to see to: which they own, or may decide."""
    return ReviewQueue.objects.filter(Q(owners=user) | Q(pk__in=with_right(user, "decide")))


def owned_queues(user: User) -> QuerySet[ReviewQueue]:
    return ReviewQueue.objects.filter(owners=user).order_by("name")


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


def deciders_of(hold: Hold) -> QuerySet[User]:
    """The people who may see a hold and decide it, by name: whom it may be assigned to."""
    return people_of(hold, "decide")


def viewers_of(hold: Hold) -> QuerySet[User]:
    """The people who may see a hold, by name: who may be asked about it."""
    return people_of(hold, "view_reviewqueue")


def people_of(hold: Hold, right: str) -> QuerySet[User]:
    """Who has `right` on the hold's queue, and may see it and the tenant."""
    users = get_user_model().objects.filter(is_active=True)
    fits = Q(is_superuser=True)
    if hold.queue is not None:
        tenant = hold.run.tenant if hold.run is not None else hold.held_event.tenant
        fits |= (
            Q(pk__in=holders(hold.queue, right))
            & Q(pk__in=holders(hold.queue, "view_reviewqueue"))
            & Q(pk__in=holders(tenant, "view_tenant"))
        )
    return users.filter(fits).order_by("first_name", "last_name", "username", "pk")


def deciders_in(queues: Iterable[UUID]) -> QuerySet[User]:
    """The people who may decide holds of any of `queues`, by name; one query for any number."""
    content_type = ContentType.objects.get_for_model(ReviewQueue)
    rights = {
        "object_pk__in": [str(queue) for queue in queues],
        "permission__codename": "decide",
        "content_type": content_type,
    }
    own = UserObjectPermission.objects.filter(**rights).values("user")
    groups = GroupObjectPermission.objects.filter(**rights).values("group")
    fits = Q(is_superuser=True) | Q(pk__in=own) | Q(groups__in=groups)
    people = get_user_model().objects.filter(fits, is_active=True).distinct()
    return people.order_by("first_name", "last_name", "username", "pk")


def holders(subject: ReviewQueue | Tenant, right: str) -> Any:
    """The IDs of those who have `right` on it, by themselves or by a group, as a subquery."""
    people: Any = get_users_with_perms(subject, only_with_perms_in=[right], with_group_users=True)
    return people.values("pk")


@dataclass(frozen=True)
class Holder:
    """A person, or a group with so many members, and the rights that they hold."""

    name: str
    user: int | None
    members: int | None
    rights: frozenset[str]


# By themselves and as groups, in one question.
HOLDERS = """
    WITH subject (content_type_id, object_pk) AS (
        SELECT * FROM UNNEST(%(kinds)s::int[], %(pks)s::text[])
    )
    SELECT COALESCE(NULLIF(TRIM(person.first_name || ' ' || person.last_name), ''),
                    person.username), person.id, NULL, permission.codename
    FROM guardian_userobjectpermission held
    JOIN auth_user person ON person.id = held.user_id AND person.is_active
    JOIN auth_permission permission ON permission.id = held.permission_id
    WHERE (held.content_type_id, held.object_pk) IN (SELECT * FROM subject)
    UNION ALL
    SELECT theirs.name, NULL,
           (SELECT COUNT(*) FROM auth_user_groups member
            JOIN auth_user person ON person.id = member.user_id AND person.is_active
            WHERE member.group_id = theirs.id),
           permission.codename
    FROM guardian_groupobjectpermission held
    JOIN auth_group theirs ON theirs.id = held.group_id
    JOIN auth_permission permission ON permission.id = held.permission_id
    WHERE (held.content_type_id, held.object_pk) IN (SELECT * FROM subject)
"""


def holders_on(provider: Provider, queues: Iterable[ReviewQueue]) -> list[Holder]:
    """Who holds rights on a provider or on its queues, by name. One query.

    Whoever holds one through a group is not among them by themselves, nor are administrators.
    """
    subjects = [provider, *queues]
    kinds = [ContentType.objects.get_for_model(subject).pk for subject in subjects]
    held: dict[tuple[str, int | None, int | None], set[str]] = defaultdict(set)
    with connection.cursor() as cursor:
        cursor.execute(HOLDERS, {"kinds": kinds, "pks": [str(subject.pk) for subject in subjects]})
        for *who, right in cursor.fetchall():
            held[(who[0], who[1], who[2])].add(right)
    found = [Holder(*who, frozenset(rights)) for who, rights in held.items()]
    return sorted(found, key=lambda holder: holder.name.casefold())


def may_review(user: User, hold: Hold) -> bool:
    """Whether somebody may decide a hold or confirm what others propose on it."""
    return may_decide(user, hold) or (
        hold.queue is not None and has_right(user, "second", hold.queue)
    )


def ensure_may_review(user: User, hold: Hold) -> None:
    """Raises `PermissionDenied`: this person may neither decide this hold nor confirm there."""
    deny("" if may_review(user, hold) else standing.NOT_YOURS)


def with_deciders(queues: Any) -> frozenset[UUID]:
    """Those of `queues`, IDs or a query for them, of which an owner is active and may decide its
    holds. One query."""
    right = {
        "permission__content_type__app_label": "reconciliation",
        "permission__codename": "decide",
        "object_pk": Cast(OuterRef("reviewqueue"), TextField()),
    }
    own = UserObjectPermission.objects.filter(user=OuterRef("user"), **right)
    of_a_group = GroupObjectPermission.objects.filter(group__user=OuterRef("user"), **right)
    owners = ReviewQueue.owners.through.objects.filter(
        Q(user__is_superuser=True) | Exists(own) | Exists(of_a_group),
        reviewqueue__in=queues,
        user__is_active=True,
    )
    return frozenset(owners.values_list("reviewqueue", flat=True))


def may_answer_for(user: User, queue: ReviewQueue) -> bool:
    """Whether `user` may see the queue's holds and decide them."""
    seen = visible_queues(user).filter(pk=queue.pk).exists()
    of_tenant = queue.tenant_id is None or visible_tenants(user).filter(pk=queue.tenant_id).exists()
    return seen and of_tenant and holds(user, "reconciliation.decide", queue)


@dataclass(frozen=True)
class Parts:
    """Who had a part in what a hold is of.

    Attributes:
        started_by: who has started its run, or one that it descends from, as the record says.
        approved_by: the accounts that approved its write.
    """

    started_by: frozenset[str] = frozenset()
    approved_by: frozenset[int] = frozenset()

    def started(self, user: User) -> bool:
        return any(actor.startswith(f"user:{user.pk} ") for actor in self.started_by)

    def approved(self, user: User) -> bool:
        return user.pk in self.approved_by

    def why_not_impartial(self, user: User) -> str:
        """What bars `user` whatever their rights; empty when nothing does."""
        return standing.why_not_impartial(self.started(user), self.approved(user))


def standing_of(user: User, hold: Hold, parts: Parts | None = None) -> Standing:
    """How `user` stands to a hold, whose run, queue, operation and open proposal come with it;
    `parts` as `parts_in` says, where that was asked already."""
    queue = hold.queue
    seconds = is_administrator(user) if queue is None else has_right(user, "second", queue)
    parts = parts or parts_in(hold)
    return Standing(
        decides=may_decide(user, hold),
        seconds=seconds,
        started=parts.started(user),
        proposed=hold.proposal is not None and hold.proposal.by_id == user.pk,
        approved=parts.approved(user),
    )


# However deep the line of runs is; of a write, what was approved when it was first proposed, too.
PART_IN = """
    WITH RECURSIVE line AS (
        SELECT id AS run, id, parent_id FROM workflows_run WHERE id = ANY (%(runs)s::uuid[])
        UNION ALL
        SELECT line.run, above.id, above.parent_id FROM workflows_run above
        JOIN line ON above.id = line.parent_id
    )
    SELECT asked.hold, ARRAY (
        SELECT entry.actor
        FROM line JOIN reconciliation_auditentry entry ON entry.object = 'run:' || line.id
        WHERE line.run = asked.run AND entry.verb = %(started)s
    ), ARRAY (
        SELECT answer.by_id FROM workflows_proposal first
        JOIN workflows_proposal anew USING (root)
        JOIN workflows_approval answer ON answer.proposal_id = anew.id
        WHERE first.id = asked.proposal AND answer.answer = %(approve)s
          AND answer.by_id IS NOT NULL
    )
    FROM unnest(%(holds)s::uuid[], %(runs)s::uuid[], %(proposals)s::uuid[])
        AS asked (hold, run, proposal)
"""


def parts_in(hold: Hold) -> Parts:
    """Who had a part in what the hold, whose operation comes with it, is of."""
    return parts_in_each([hold])[hold.pk]


def parts_in_each(holds: Sequence[Hold]) -> dict[UUID, Parts]:
    """The same of many, with one question."""
    operations = [hold.operation for hold in holds]
    asked: dict[str, Any] = {
        "holds": [hold.pk for hold in holds],
        "runs": [hold.run_id for hold in holds],
        "proposals": [each.proposal_id if each is not None else None for each in operations],
        "started": STARTED,
        "approve": Answer.APPROVE.value,
    }
    with connection.cursor() as cursor:
        cursor.execute(PART_IN, asked)
        return {
            hold: Parts(frozenset(started_by), frozenset(approved_by))
            for hold, started_by, approved_by in cursor.fetchall()
        }


def has_right(user: User, right: str, queue: ReviewQueue) -> bool:
    return holds(user, f"reconciliation.{right}", queue)


def why_not_decide(user: User, hold: Hold, parts: Parts | None = None) -> str:
    """Why this person may not decide or propose; empty when they may. `parts` as `standing_of`."""
    return standing.why_not_decide(standing_of(user, hold, parts))


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


def seconds_in(queue: ReviewQueue) -> list[User]:
    """Those who may confirm what is proposed in a queue, by name; kept with the queue."""
    keeper: Any = queue
    if not hasattr(keeper, "its_seconds"):
        found = get_users_with_perms(queue, only_with_perms_in=["second"], with_group_users=True)
        people = get_user_model().objects.filter(is_active=True, pk__in=found)
        keeper.its_seconds = list(people.order_by("username"))
    seconds: list[User] = keeper.its_seconds
    return seconds


def other_seconds(user: User, queue: ReviewQueue) -> list[User]:
    """Those beside `user` who may confirm what is proposed in a queue, by name."""
    return [each for each in seconds_in(queue) if each != user]


def visible_channels(user: User) -> QuerySet[Channel]:
    """The channels that are a person's to see to: their own, and those of the queues they own."""
    if user.is_superuser:
        return Channel.objects.all()
    owned = ReviewQueue.objects.filter(owners=user, pk__in=visible_queues(user))
    return Channel.objects.filter(Q(person=user) | Q(queue__in=owned))


# As `open_holds`, said in SQL: each page that is open counts them twice a minute.
OPEN_HOLDS = """
    reconciliation_hold hold
    WHERE state = 'open'
        AND (queue_id = ANY (%(queues)s::uuid[])
            OR %(any_queue)s AND queue_id IS NOT NULL
            OR %(no_queue)s AND queue_id IS NULL)
        AND (%(any_tenant)s OR tenant_id = ANY (%(tenants)s::uuid[]))
"""


def of_open_holds(user: User) -> dict[str, Any]:
    """What `OPEN_HOLDS` is asked with."""
    queues = held_on(user, "reconciliation.view_reviewqueue", ReviewQueue)
    tenants = held_on(user, "workflows.view_tenant", Tenant)
    return {
        "user": user.pk,
        "queues": queues or [],
        "any_queue": queues is None,
        "no_queue": user.is_superuser and user.is_active,
        "tenants": tenants or [],
        "any_tenant": tenants is None,
    }


def count_open_holds(user: User) -> tuple[int, datetime]:
    """How many open holds a person may see, and the database's time. One query."""
    counted = f"SELECT count(*), statement_timestamp() FROM {OPEN_HOLDS}"  # noqa: S608 (constants)
    with connection.cursor() as cursor:
        cursor.execute(counted, of_open_holds(user))
        number, now = cursor.fetchone() or (0, timezone.now())
    return number, now


def open_holds(user: User) -> QuerySet[Hold]:
    return visible_holds(user).filter(state=HoldState.OPEN)
