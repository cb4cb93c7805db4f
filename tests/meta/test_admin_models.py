"""Every model of the admin, also one that is added: what may be done with its rows at all."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.test import RequestFactory

from reconciliation.models import Shift
from workflows.admin.kept import Kept

pytestmark = pytest.mark.django_db

# No history hangs on these. They go one by one, after what goes with them was read, on record.
MAY_GO = {Group, Shift}
REGISTERED = sorted(admin.site._registry.items(), key=lambda each: each[0]._meta.label)


@pytest.fixture
def request_of_administrator() -> Any:
    request = RequestFactory().get("/admin/")
    request.user = User.objects.create_superuser("admin_1")
    return request


@pytest.mark.parametrize(
    ("model", "shown"), REGISTERED, ids=[model._meta.label for model, _ in REGISTERED]
)
def test_no_row_is_deleted_that_history_hangs_on_and_none_in_bulk(
    model: Any, shown: Any, request_of_administrator: Any
) -> None:
    assert shown.get_actions(request_of_administrator) == {}
    assert shown.has_delete_permission(request_of_administrator) == (model in MAY_GO)
    assert isinstance(shown, Kept) or model in MAY_GO


def test_no_right_of_djangos_own_is_offered_that_does_nothing() -> None:
    form = admin.site._registry[Group].get_form(None)()
    offered = {each.codename for each in form.fields["permissions"].queryset}
    assert {"view_tenant", "change_provider", "add_contractversion"} <= offered
    assert not {"delete_run", "change_run", "add_decision", "decide", "view_payloads"} & offered
    assert len(offered) < Permission.objects.count()
