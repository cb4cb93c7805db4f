"""Who can do what with one object: everybody who can, and how they come by it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.db.models import Exists, OuterRef, Q, QuerySet, Value
from django.urls import reverse
from guardian.models import GroupObjectPermission, UserObjectPermission

from romulus_site.rights.kinds import Kind
from romulus_site.rights.pages import HolderRow, WhoPage, cells
from romulus_site.rights.paging import by_name

GIVEN = "given"
ADMINISTRATOR = "administrator"
ON_ALL = "on all of them"

Of = dict[int, set[str]]
"""Codenames, by the ID of whoever has them."""


def who_can(kind: Kind, subject: Any, *, people: str = "", groups: str = "") -> WhoPage:
    """As many queries for many people as for few.

    Args:
        people, groups: the names that the pages before ended with.
    """
    table = Table.of(kind, subject)
    users, next_people = by_name(table.users(), "username", people)
    teams, next_groups = by_name(table.teams(), "name", groups)
    return WhoPage(
        kind=kind,
        subject=subject,
        back=change_page(kind, subject),
        people=table.rows_of(users),
        groups=[table.row_of(team) for team in teams],
        next_people=next_people,
        next_groups=next_groups,
    )


def change_page(kind: Kind, subject: Any) -> str:
    name = f"admin:{kind.app}_{kind.model._meta.model_name}_change"
    return reverse(name, args=[subject.pk])


@dataclass(frozen=True)
class Table:
    """Whatever is held on one object.

    Attributes:
        given: the rows of rights that people were given.
        groups: what groups were given.
        everywhere: what groups have on all objects of the kind.
    """

    kind: Kind
    subject: Any
    given: QuerySet[UserObjectPermission]
    groups: Of
    everywhere: Of

    @classmethod
    def of(cls, kind: Kind, subject: Any) -> Table:
        about = {
            "content_type": ContentType.objects.get_for_model(kind.model),
            "object_pk": str(subject.pk),
            "permission__codename__in": kind.codenames,
        }
        of_groups = GroupObjectPermission.objects.filter(**about)
        on_all = Group.permissions.through.objects.filter(permission__in=shown_by(kind))
        columns = ("group_id", "permission__codename")
        here = of_groups.values_list(*columns, Value(value=False))
        held = list(here.union(on_all.values_list(*columns, Value(value=True)), all=True))
        return cls(
            kind=kind,
            subject=subject,
            given=UserObjectPermission.objects.filter(**about),
            groups=gathered((group, name) for group, name, on_all in held if not on_all),
            everywhere=gathered((group, name) for group, name, on_all in held if on_all),
        )

    @property
    def group_ids(self) -> set[int]:
        return {*self.groups, *self.everywhere}

    def users(self) -> QuerySet[User]:
        """Everybody who can do something, with what marks them."""
        members = User.groups.through.objects.filter(group_id__in=self.group_ids)
        on_all = User.user_permissions.through.objects.filter(permission__in=shown_by(self.kind))
        can = (
            Q(is_superuser=True)
            | Q(pk__in=self.given.values("user_id"))
            | Q(pk__in=members.values("user_id"))
            | Q(pk__in=on_all.values("user_id"))
        )
        owners = getattr(self.subject, "owners", None)
        own: Any = Value(value=False)
        if owners is not None:
            can |= Q(pk__in=owners.values("pk"))
            own = Exists(owners.filter(pk=OuterRef("pk")))
        all_of_them = Exists(on_all.filter(user_id=OuterRef("pk")))
        return User.objects.filter(can).annotate(is_owner=own, sees_all=all_of_them)

    def teams(self) -> QuerySet[Group]:
        return Group.objects.filter(pk__in=self.group_ids)

    def rows_of(self, users: Iterable[Any]) -> list[HolderRow]:
        users = list(users)
        ids = [user.pk for user in users]
        given = self.given.filter(user_id__in=ids).values_list("user_id", "permission__codename")
        direct = gathered(given)
        membership: dict[int, list[tuple[int, str]]] = defaultdict(list)
        rows = User.groups.through.objects.filter(user_id__in=ids, group_id__in=self.group_ids)
        for user, group, name in rows.order_by("group__name").values_list(
            "user_id", "group_id", "group__name"
        ):
            membership[user].append((group, name))
        return [self.row(user, direct.get(user.pk, set()), membership[user.pk]) for user in users]

    def row(self, user: Any, direct: set[str], groups: list[tuple[int, str]]) -> HolderRow:
        marks = ["owner"] if user.is_owner else []
        marks += [] if user.is_active else ["account closed: can do nothing"]
        means = {each: self.means(each, user, direct, groups) for each in self.kind.codenames}
        return HolderRow(
            name=user.get_username(),
            cells=cells(self.kind, means if user.is_active else {}),
            change_url=self.url("person", user.pk),
            about_url=reverse("rights_of_person", args=[user.pk]),
            mark=", ".join(marks),
        )

    def means(
        self, codename: str, user: Any, direct: set[str], groups: list[tuple[int, str]]
    ) -> list[str]:
        """How somebody comes by one right."""
        found = [ADMINISTRATOR] if user.is_superuser else []
        found += [GIVEN] if codename in direct else []
        for group, name in groups:
            if codename in self.groups.get(group, set()):
                found.append(f"by {name}")
            elif codename in self.everywhere.get(group, set()):
                found.append(f"by {name}, {ON_ALL}")
        if user.sees_all and codename in view_of(self.kind):
            found.append(ON_ALL)
        return found

    def row_of(self, group: Group) -> HolderRow:
        mine, on_all = (each.get(group.pk, set()) for each in (self.groups, self.everywhere))
        means = {
            each: [GIVEN] * (each in mine) + [ON_ALL] * (each in on_all)
            for each in self.kind.codenames
        }
        return HolderRow(
            name=group.name,
            cells=cells(self.kind, means),
            change_url=self.url("group", group.pk),
            about_url=reverse("rights_of_group", args=[group.pk]),
        )

    def url(self, whose: str, pk: int) -> str:
        return reverse("rights_change", args=[self.kind.slug, self.subject.pk, whose, pk])


def view_of(kind: Kind) -> set[str]:
    """The rights that count for each object when they are held on all of them."""
    return {right.codename for right in kind.rights if right.shows}


def shown_by(kind: Kind) -> QuerySet[Permission]:
    return Permission.objects.filter(
        content_type__app_label=kind.app,
        content_type__model=kind.model._meta.model_name,
        codename__in=view_of(kind),
    )


def gathered(pairs: Iterable[tuple[int, str]]) -> Of:
    found: Of = defaultdict(set)
    for whose, codename in pairs:
        found[whose].add(codename)
    return dict(found)


def held_by(kind: Kind, subject: Any, holder: User | Group) -> Mapping[str, list[str]]:
    """How a person or group comes by each right on one object."""
    table = Table.of(kind, subject)
    if isinstance(holder, Group):
        row = table.row_of(holder)
    else:
        user: Any = holder
        user.is_owner = False
        on_all = User.user_permissions.through.objects.filter(permission__in=shown_by(kind))
        user.sees_all = on_all.filter(user_id=holder.pk).exists()
        (row,) = table.rows_of([user])
    return {name: cell.means for name, cell in zip(kind.codenames, row.cells, strict=True)}
