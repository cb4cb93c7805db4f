"""What staff who may see some objects are offered in the admin: nothing of the others."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from uuid import uuid4

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from guardian.shortcuts import assign_perm

from reconciliation.models import Provider, ReviewQueue
from tests.factories import administrator, person, ready_provider, started_run, tenant

pytestmark = pytest.mark.django_db

LEDGER = ("view_hold", "view_operation", "view_shift", "view_channel")
LISTS = ("hold", "operation", "shift", "channel")


@pytest.fixture
def own() -> Provider:
    return ready_provider("payments")


@pytest.fixture
def foreign() -> Provider:
    provider = ready_provider("desk")
    queue = ReviewQueue.objects.create(slug="foreign", name="Queue of others", provider=provider)
    Provider.objects.filter(pk=provider.pk).update(name="Provider of others", default_queue=queue)
    return Provider.objects.get(pk=provider.pk)


@pytest.fixture
def staff(own: Provider) -> Client:
    user: User = person("staff_1", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=LEDGER))
    assign_perm("reconciliation.configure", user, own)
    client = Client()
    client.force_login(User.objects.get(pk=user.pk))
    return client


def url(name: str, *args: Any) -> str:
    return reverse(f"admin:reconciliation_{name}", args=args)


@pytest.mark.parametrize("name", LISTS)
def test_filters_name_no_object_that_one_may_not_see(
    staff: Client, foreign: Provider, name: str
) -> None:
    page = url(f"{name}_changelist")
    assert "of others" not in staff.get(page).content.decode()
    everything = Client()
    everything.force_login(administrator())
    if name in {"hold", "operation"}:
        assert "of others" in everything.get(page).content.decode()


def test_a_form_offers_what_one_may_see_and_what_stands_there(
    staff: Client, own: Provider, foreign: Provider
) -> None:
    shown = staff.get(url("provider_change", own.pk))
    field = shown.context["adminform"].form.fields["default_queue"]
    assert list(field.queryset) == [own.default_queue]
    assert "Queue of others" not in shown.content.decode()


def test_a_foreign_queue_that_is_posted_all_the_same_is_no_choice(
    staff: Client, own: Provider, foreign: Provider
) -> None:
    page = url("provider_change", own.pk)
    answer = staff.post(page, {"default_queue": foreign.default_queue_id})
    assert "valid choice" in str(answer.context["adminform"].form.errors["default_queue"])


@pytest.mark.parametrize("name", ["provider_history", "provider_delete"])
def test_a_foreign_object_is_answered_as_one_that_is_not_there(
    staff: Client, foreign: Provider, name: str
) -> None:
    for key in (foreign.pk, uuid4()):
        assert staff.get(url(name, key)).status_code == HTTPStatus.NOT_FOUND


def test_the_history_of_an_account_does_not_tell_whether_there_is_one(staff: Client) -> None:
    for key in (administrator().pk, 10**6):
        page = reverse("admin:auth_user_history", args=[key])
        assert staff.get(page).status_code == HTTPStatus.NOT_FOUND


def test_no_right_is_offered_on_the_record_which_is_the_administrators_alone() -> None:
    client = Client()
    client.force_login(administrator())
    form = client.get(reverse("admin:auth_group_add")).context["adminform"].form
    offered = {each.codename for each in form.fields["permissions"].queryset}
    assert "view_hold" in offered
    assert "view_auditentry" not in offered


@pytest.mark.parametrize(
    "typed",
    ['{"a": "\\ud800"}', '["\\u0000"]', "NaN", "[" * 50_000 + "]" * 50_000, "9" * 5000, "5"],
    ids=["surrogate", "nul", "nan", "deep", "long", "number"],
)
def test_json_that_cannot_be_stored_is_said_at_its_field(own: Provider, typed: str) -> None:
    client = Client()
    client.force_login(administrator())
    answer = client.post(url("provider_change", own.pk), {"settings": typed})
    assert answer.status_code == HTTPStatus.OK
    assert answer.context["adminform"].form.errors["settings"]


def test_a_form_of_which_another_field_is_wrong_is_shown_again_without_settings(
    own: Provider,
) -> None:
    client = Client()
    client.force_login(administrator())
    answer = client.post(url("provider_change", own.pk), {"settings": "", "adapter": "none"})
    assert answer.status_code == HTTPStatus.OK
    errors = answer.context["adminform"].form.errors
    assert "adapter" in errors
    assert "settings" not in errors


def shown_to_clerk(lookup: str) -> Any:
    """The admin's list of runs, narrowed down, to staff who may see the tenant and no payload."""
    clerk = person("clerk_1", is_staff=True)
    clerk.user_permissions.set(Permission.objects.filter(codename="view_run"))
    assign_perm("workflows.view_tenant", clerk, tenant())
    client = Client()
    client.force_login(User.objects.get(pk=clerk.pk))
    return client.get(f"{reverse('admin:workflows_run_changelist')}?{lookup}")


@pytest.mark.parametrize(
    "lookup",
    [
        *("input__order=ORD-7001", "input__order__startswith=O", "input__contains=x"),
        *("tenant__name__startswith=N", "start_key__gt=a"),
    ],
)
def test_no_row_is_guessed_by_what_it_holds(lookup: str) -> None:
    """The number of rows would tell, letter by letter, what only some may see."""
    started_run()
    assert shown_to_clerk(lookup).status_code == HTTPStatus.BAD_REQUEST


def test_what_is_offered_narrows_rows_down() -> None:
    run = started_run()
    assert str(run.pk) in shown_to_clerk("state=ready").content.decode()
    assert str(run.pk) not in shown_to_clerk("state=held").content.decode()


@pytest.mark.parametrize(
    ("name", "lookup"),
    [
        *(("provider", "credential_sealed__gt=a"), ("provider", "adapter__exact=%00")),
        *(("hold", "state=%00"), ("evidence", "kind=%00"), ("channel", "kind__exact=%00")),
        *(("channel", "address_sealed__contains=a"), ("operation", "receipt__isnull=False")),
    ],
)
def test_nor_by_an_administrator_and_no_value_breaks_a_list(name: str, lookup: str) -> None:
    client = Client()
    client.force_login(administrator())
    answer = client.get(f"{url(f'{name}_changelist')}?{lookup}")
    assert answer.status_code == HTTPStatus.BAD_REQUEST


def test_every_filter_of_the_admin_is_one_that_an_address_may_use() -> None:
    client = Client()
    client.force_login(administrator())
    ready_provider("payments")
    for model, each in admin.site._registry.items():
        if not model._meta.app_label.startswith(("workflows", "reconciliation", "auth")):
            continue
        page = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        answer = client.get(page)
        assert answer.status_code == HTTPStatus.OK, page
        filters = answer.context["cl"].filter_specs
        asked = [
            choice["query_string"]
            for spec in filters
            for choice in spec.choices(answer.context["cl"])
        ]
        assert asked or not each.list_filter or not filters
        for query in asked:
            assert client.get(f"{page}{query}").status_code == HTTPStatus.OK, f"{page}{query}"
