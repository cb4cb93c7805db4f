"""What one person or group can do, with which objects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from django.contrib.auth.models import Group, User
from django.contrib.contenttypes.models import ContentType
from django.db.models import Q, UUIDField, Value
from django.db.models.functions import Cast
from django.urls import reverse
from guardian.models import GroupObjectPermission, UserObjectPermission

from romulus_site.rights.kinds import KINDS, Kind
from romulus_site.rights.pages import ObjectRow, Section, WhatPage, cells
from romulus_site.rights.paging import by_name
from romulus_site.rights.who import GIVEN
from workflows.rights import objects_with

CLOSED = "The account is closed: it can do nothing, whatever stands below."
EVERYTHING = "An administrator: may do all of this with every object, whatever stands below."
MEANT = "What follows was given, by itself or by a group."
GROUP = "Whoever is in this group can do this."

How = dict[tuple[int, str], dict[str, list[str]]]
"""By kind of object and ID: how each right is held."""


def what_can(holder: User | Group, viewer: User, after: Mapping[str, str]) -> WhatPage:
    """The objects that `holder` has a right on, of those whose rights `viewer` may know of.

    Args:
        after: by kind, the slug that the page before ended with.
    """
    pages = {
        kind.slug: by_name(objects_of(holder, kind, viewer), "slug", after.get(kind.slug, ""))
        for kind in KINDS.values()
    }
    how = how_held(holder, [each for rows, _ in pages.values() for each in rows])
    is_group = isinstance(holder, Group)
    return WhatPage(
        name=holder.name if isinstance(holder, Group) else holder.get_username(),
        is_group=is_group,
        back=reverse(f"admin:auth_{'group' if is_group else 'user'}_change", args=[holder.pk]),
        all=said_of(holder),
        sections=[
            Section(kind, [row(kind, each, how) for each in rows], more)
            for kind, (rows, more) in zip(KINDS.values(), pages.values(), strict=True)
        ],
    )


def said_of(holder: User | Group) -> str:
    if isinstance(holder, Group):
        return GROUP
    if not holder.is_active:
        return CLOSED
    return EVERYTHING if holder.is_superuser else MEANT


def tables_of(holder: User | Group) -> list[Any]:
    """The rows of rights that count for `holder`: their own, and those of their groups."""
    if isinstance(holder, Group):
        return [GroupObjectPermission.objects.filter(group=holder)]
    groups = holder.groups.values("pk")
    return [
        UserObjectPermission.objects.filter(user=holder),
        GroupObjectPermission.objects.filter(group_id__in=groups),
    ]


def objects_of(holder: User | Group, kind: Kind, viewer: User) -> Any:
    held = Q()
    for table in tables_of(holder):
        about = table.filter(
            content_type=ContentType.objects.get_for_model(kind.model),
            permission__codename__in=kind.codenames,
        )
        held |= Q(pk__in=about.values(key=Cast("object_pk", UUIDField())))
    return objects_with(viewer, kind.configure, kind.model.objects.filter(held))


def how_held(holder: User | Group, objects: Iterable[Any]) -> How:
    keys = {str(each.pk) for each in objects}
    columns = ("content_type_id", "object_pk", "permission__codename")
    by = (Value(""), "group__name")  # as `tables_of` orders them
    first, *more = (
        table.filter(object_pk__in=keys).values_list(*columns, name)
        for table, name in zip(tables_of(holder), by, strict=False)
    )
    found: How = defaultdict(lambda: defaultdict(list))
    for kind, pk, codename, group in first.union(*more, all=True):
        found[kind, pk][codename].append(f"by {group}" if group else GIVEN)
    return found


def row(kind: Kind, subject: Any, how: How) -> ObjectRow:
    held = how[ContentType.objects.get_for_model(kind.model).pk, str(subject.pk)]
    return ObjectRow(
        name=str(subject),
        url=reverse("rights", args=[kind.slug, subject.pk]),
        cells=cells(kind, held),
    )


def known(kind: str, pk: UUID, viewer: User) -> tuple[Kind, Any] | None:
    """The object whose rights `viewer` may know of and change; None when there is none."""
    if kind not in KINDS:
        return None
    found = KINDS[kind]
    subject = objects_with(viewer, found.configure, found.model.objects.filter(pk=pk)).first()
    return None if subject is None else (found, subject)
