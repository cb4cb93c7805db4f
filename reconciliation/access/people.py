"""Who may see, decide and confirm: the people of a hold, a queue or a provider."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.models import BooleanField, Func, Q, QuerySet, Value
from guardian.models import GroupObjectPermission, UserObjectPermission
from guardian.shortcuts import get_users_with_perms

from reconciliation.access.in_sql import DECIDES, SEES_TENANT
from reconciliation.access.parts import Parts
from reconciliation.models import Hold, Provider, ReviewQueue
from workflows.models import Tenant

if TYPE_CHECKING:
    from django.contrib.auth.models import User


SEE = "view_reviewqueue"


def deciders_of(hold: Hold) -> QuerySet[User]:
    """The people who may see a hold and decide it, by name: whom it may be assigned to."""
    return people_of(hold, "decide")


def viewers_of(hold: Hold) -> QuerySet[User]:
    """The people who may see a hold, by name: who may be asked about it."""
    return people_of(hold, SEE)


def people_of(hold: Hold, right: str) -> QuerySet[User]:
    """Who has `right` on the hold's queue, and may see it and the tenant."""
    users = get_user_model().objects.filter(is_active=True)
    fits = Q(is_superuser=True)
    if hold.queue is not None:
        tenant = hold.run.tenant if hold.run is not None else hold.held_event.tenant
        fits |= (
            Q(pk__in=seers(hold.queue, SEE))
            & Q(pk__in=seers(tenant, "view_tenant"))
            & (Q() if right == SEE else Q(pk__in=holders(hold.queue, right)))
        )
    return users.filter(fits).order_by("first_name", "last_name", "username", "pk")


def confirmers_of(hold: Hold, proposer: User, parts: Parts) -> list[User]:
    """Those who may see a hold, whose queue comes with it, and confirm there what `proposer` has
    proposed, whom nothing else bars; by name."""
    assert hold.queue is not None, "only a queue asks for two"
    able = people_of(hold, "second").filter(pk__in=holders(hold.queue, "second"))
    others = able.exclude(pk=proposer.pk)
    return [person for person in others if not parts.why_not_impartial(person)]


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


def seers(subject: ReviewQueue | Tenant, right: str) -> Any:
    """The IDs of those who may see it, as a subquery: a right on all of a kind shows each of them,
    and lets nobody act on one."""
    kind = ContentType.objects.get_for_model(subject)
    on_all = Permission.objects.filter(content_type=kind, codename=right)
    fits = Q(user_permissions__in=on_all) | Q(groups__permissions__in=on_all)
    people = get_user_model().objects.filter(Q(pk__in=holders(subject, right)) | fits)
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


def with_deciders(queues: Any, tenant: UUID | None = None) -> frozenset[UUID]:
    """Those of `queues`, IDs or a query for them, of which an owner is active and may decide its
    holds: those of `tenant`, which they may see, where one is given. One query."""
    owners = marked_deciders(ReviewQueue.owners.through.objects.all(), "user", "reviewqueue")
    able = owners.filter(decides=True, reviewqueue__in=queues, user__is_active=True)
    if tenant is not None:
        able = able.filter(SeesTenant("user", Value(tenant)))
    return frozenset(able.values_list("reviewqueue", flat=True))


def marked_deciders(rows: QuerySet[Any], person: str, queue: str) -> QuerySet[Any]:
    """`rows` that name a person and a queue, each with `decides`: whether they may decide its
    holds."""
    marked: QuerySet[Any] = rows.annotate(decides=Decides(person, queue))
    return marked


class Decides(Func):
    """`DECIDES` of a person and a queue. Every page of an operation and of a run asks it several
    times, and to have Django make the question anew took a tenth of the page's time."""

    output_field = BooleanField()
    template = f"""(
        SELECT {DECIDES.format(person="who.person", queue="who.queue")}
        FROM (VALUES (%(expressions)s)) who (person, queue)
    )"""  # noqa: S608 (constants)


class SeesTenant(Func):
    """`SEES_TENANT` of a person and a tenant."""

    output_field = BooleanField()
    template = f"""(
        SELECT {SEES_TENANT.format(person="who.person", tenant="who.tenant")}
        FROM (VALUES (%(expressions)s)) who (person, tenant)
    )"""  # noqa: S608 (constants)


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
