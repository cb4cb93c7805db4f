"""What rights a person holds, by themselves and by their groups: read once, with one query.

Only here are the tables of rights read for a decision about what somebody may see or do. What was
read is kept with the user object, which lives as long as a request: a right that is taken away is
gone at the next one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from django.contrib.auth.models import Permission
from django.db.models import Model, Q, QuerySet, Value
from guardian.models import GroupObjectPermission, UserObjectPermission

if TYPE_CHECKING:
    from django.contrib.auth.models import User

APPS = ("workflows", "reconciliation")
KEPT_AS = "_rights_held"

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
    held: Rights | None = user.__dict__.get(KEPT_AS)
    if held is None:
        held = read(user)
        user.__dict__[KEPT_AS] = held
    return held


def read(user: User) -> Rights:
    of_apps = Q(permission__content_type__app_label__in=APPS)
    known = ("permission__content_type__app_label", "permission__codename")
    columns = (*known, "permission__content_type__model", "object_pk")
    by_user = UserObjectPermission.objects.filter(of_apps, user=user).values_list(*columns)
    by_group = GroupObjectPermission.objects.filter(of_apps, group__user=user)
    as_a_whole = Permission.objects.filter(
        Q(user=user) | Q(group__user=user), content_type__app_label__in=APPS
    ).values_list("content_type__app_label", "codename", "content_type__model", Value(""))
    on: dict[Key, set[str]] = defaultdict(set)
    everywhere: set[Key] = set()
    rows = by_user.union(by_group.values_list(*columns), as_a_whole, all=True)
    for app, codename, model, pk in rows:
        key = (f"{app}.{codename}", model)
        if pk:
            on[key].add(pk)
        else:
            everywhere.add(key)
    return Rights({key: frozenset(pks) for key, pks in on.items()}, frozenset(everywhere))


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
    return among.filter(pk__in={pk for key in keys for pk in held.on.get(key, ())})


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
