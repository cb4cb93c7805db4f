"""What rights a person holds, by themselves and by their groups: read once, with one query.

Only here are the tables of rights read for a decision about what somebody may see or do. What was
read is kept with the user object, which lives as long as a request: a right that is taken away is
gone at the next one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from django.db.models import Model, QuerySet

from workflows.lookups import ids_in
from workflows.sql import fetch_of
from workflows.sql.statement import Statement

if TYPE_CHECKING:
    from django.contrib.auth.models import User

APPS = ("workflows", "reconciliation")
KEPT_AS = "_rights_held"

# In SQL, because every request of somebody asks it, and to build it anew takes longer than to
# answer it: on objects by oneself and by groups, then on a kind of object as a whole.
HELD = """
    SELECT held.user_id, kind.app_label, permission.codename, kind.model, held.object_pk
    FROM (
        SELECT user_id, permission_id, object_pk FROM guardian_userobjectpermission
        WHERE user_id = ANY (%(users)s)
        UNION ALL
        SELECT member.user_id, theirs.permission_id, theirs.object_pk
        FROM guardian_groupobjectpermission theirs
        JOIN auth_user_groups member USING (group_id) WHERE member.user_id = ANY (%(users)s)
        UNION ALL
        SELECT user_id, permission_id, NULL FROM auth_user_user_permissions
        WHERE user_id = ANY (%(users)s)
        UNION ALL
        SELECT member.user_id, theirs.permission_id, NULL FROM auth_group_permissions theirs
        JOIN auth_user_groups member USING (group_id) WHERE member.user_id = ANY (%(users)s)
    ) held
    JOIN auth_permission permission ON permission.id = held.permission_id
    JOIN django_content_type kind ON kind.id = permission.content_type_id
    WHERE kind.app_label = ANY (%(apps)s)
"""
# One row for each right of each: to take many rows apart takes longer than to find them.
RIGHTS = Statement(
    "rights",
    f"""
    SELECT user_id, app_label, codename, model, json_agg(object_pk) AS objects FROM ({HELD}) held
    GROUP BY user_id, app_label, codename, model
    """,  # noqa: S608 (a constant)
)

# The tenants that the one of `users` may see (all of them to a `superuser`), for a statement that
# says everything in SQL: `visible` of its WITH.
ON_TENANTS = (
    "FROM held WHERE app_label = 'workflows' AND codename = 'view_tenant' AND model = 'tenant'"
)
VISIBLE_TENANTS = f"""
    held AS ({HELD}), visible AS (
        SELECT id FROM workflows_tenant WHERE %(superuser)s
            OR EXISTS (SELECT {ON_TENANTS} AND object_pk IS NULL)
            OR id::text IN (SELECT object_pk {ON_TENANTS} AND object_pk IS NOT NULL)
    )"""  # noqa: S608 (constants)

Row = TypeVar("Row", bound=Model)
Key = tuple[str, str]
"""A right, "workflows.view_tenant", and the kind of object that it is about, "tenant"."""


@dataclass(frozen=True)
class Rights:
    """Attributes:
    on: the IDs, as text, of the objects that each right is held on.
    everywhere: the rights that are held on a kind of object as a whole.
    """

    on: Mapping[Key, frozenset[str]]
    everywhere: frozenset[Key]


def rights_of(user: User) -> Rights:
    """Everything that `user` holds. Superusers need none, and are not asked about."""
    read_rights([user])
    held: Rights = user.__dict__[KEPT_AS]
    return held


def read_rights(users: Iterable[User]) -> None:
    """Read what each of `users` holds of whom that was not read yet; one query for all of them."""
    asked = [user for user in users if KEPT_AS not in user.__dict__]
    if not asked:
        return
    on: dict[int, dict[Key, frozenset[str]]] = defaultdict(dict)
    everywhere: dict[int, set[Key]] = defaultdict(set)
    found = fetch_of(RIGHTS, {"users": [user.pk for user in asked], "apps": list(APPS)})
    for row in found:
        key = (f"{row['app_label']}.{row['codename']}", row["model"])
        objects = frozenset(row["objects"])
        if None in objects:
            everywhere[row["user_id"]].add(key)
        if pks := objects - {None}:
            on[row["user_id"]][key] = pks
    for user in asked:
        user.__dict__[KEPT_AS] = Rights(on[user.pk], frozenset(everywhere[user.pk]))


def asked_for(user: User) -> dict[str, Any]:
    """What `VISIBLE_TENANTS` asks for."""
    return {"users": [user.pk], "superuser": user.is_superuser, "apps": list(APPS)}


def objects_with(user: User, right: str | Iterable[str], among: QuerySet[Row]) -> QuerySet[Row]:
    """Those `among` which `user` holds the right on (any of several), also by holding it on
    all of them."""
    if not user.is_active:
        return among.none()
    if user.is_superuser:
        return among
    keys = [
        (each, among.model._meta.model_name or "")
        for each in ([right] if isinstance(right, str) else right)
    ]
    held = rights_of(user)
    if not held.everywhere.isdisjoint(keys):
        return among
    return among.filter(pk__among=ids_in({pk for key in keys for pk in held.on.get(key, ())}))


def held_on(user: User, right: str, kind: type[Model]) -> list[str] | None:
    """The IDs of the objects of a kind that `user` holds the right on; None: of all of them.

    For what is asked so often that it is said in SQL.
    """
    if not user.is_active:
        return []
    key = (right, kind._meta.model_name or "")
    if user.is_superuser or key in rights_of(user).everywhere:
        return None
    return sorted(rights_of(user).on.get(key, ()))


def holds(user: User, right: str, subject: Model) -> bool:
    """Whether `user` holds the right on this very object: to act takes a right on the object."""
    if not user.is_active:
        return False
    if user.is_superuser:
        return True
    key = (right, subject._meta.model_name or "")
    return str(subject.pk) in rights_of(user).on.get(key, frozenset())


def holds_everywhere(user: User, right: str, kind: type[Model]) -> bool:
    """Whether `user` holds the right on all objects of that kind."""
    if user.is_superuser or not user.is_active:
        return user.is_active
    return (right, kind._meta.model_name or "") in rights_of(user).everywhere


def holds_on_any(user: User, right: str, kind: type[Model]) -> bool:
    """Whether `user` holds the right on at least one object of that kind, which may be gone."""
    if user.is_superuser or not user.is_active:
        return user.is_active
    return (right, kind._meta.model_name or "") in rights_of(user).on
