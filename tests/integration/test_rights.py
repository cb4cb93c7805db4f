"""What rights a person holds: read once, by themselves and by their groups, and gone when gone."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from guardian.shortcuts import assign_perm, remove_perm

from reconciliation.models import ReviewQueue
from tests.factories import tenant
from tests.statements import statements
from workflows.models import Tenant
from workflows.rights import holds, holds_everywhere, objects_with

pytestmark = pytest.mark.django_db

VIEW, CONTROL = "workflows.view_tenant", "workflows.control_runs"


def person(**fields: Any) -> User:
    """As the next request has it: with nothing kept of an earlier one."""
    user, _ = User.objects.get_or_create(username="ada")
    User.objects.filter(pk=user.pk).update(**fields)
    return User.objects.get(pk=user.pk)


def seen_by(user: User) -> list[str]:
    return [each.slug for each in objects_with(user, VIEW, Tenant.objects.order_by("slug"))]


def test_a_right_is_held_on_an_object_by_oneself_or_by_a_group() -> None:
    first, second, third = (tenant(slug) for slug in ("a", "b", "c"))
    team = Group.objects.create(name="team")
    person().groups.add(team)
    assign_perm(VIEW, person(), first)
    assign_perm(VIEW, team, second)
    assign_perm(CONTROL, person(), third)
    assert seen_by(person()) == ["a", "b"]
    assert [holds(person(), VIEW, each) for each in (first, second, third)] == [True, True, False]
    remove_perm(VIEW, team, second)
    assert seen_by(person()) == ["a"]
    person().groups.clear()
    assert seen_by(person()) == ["a"]


def test_all_rights_are_read_with_one_query() -> None:
    for slug in ("a", "b", "c"):
        assign_perm(VIEW, person(), tenant(slug))
    queue = ReviewQueue.objects.create(slug="q", name="Q")
    assign_perm("reconciliation.decide", person(), queue)
    user, known = person(), tenant("a")
    with statements() as sent:
        assert holds(user, VIEW, known)
        assert not holds(user, CONTROL, known)
        assert holds(user, "reconciliation.decide", queue)
        assert not holds_everywhere(user, VIEW, Tenant)
    assert len(sent) == 1


def test_a_right_on_all_shows_all_and_lets_nobody_act_on_one() -> None:
    known = tenant("a")
    person().user_permissions.add(Permission.objects.get(codename="view_tenant"))
    assert seen_by(person()) == ["a"]
    assert holds_everywhere(person(), VIEW, Tenant)
    assert not holds(person(), VIEW, known)


def test_superusers_hold_all_and_whoever_is_not_active_nothing() -> None:
    known = tenant("a")
    assign_perm(VIEW, person(), known)
    assert seen_by(person(is_superuser=True)) == ["a"]
    assert holds(person(), CONTROL, known)
    assert holds_everywhere(person(), CONTROL, Tenant)
    locked_out = person(is_active=False)
    assert seen_by(locked_out) == []
    assert not holds(locked_out, VIEW, known)
    assert not holds_everywhere(locked_out, VIEW, Tenant)
