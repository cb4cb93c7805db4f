"""People and groups in the admin, and case A23 where it is about accounts."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.apps import apps
from django.contrib import admin as admin_site
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse
from guardian.shortcuts import assign_perm

from reconciliation.models import AuditEntry
from tests.factories import administrator, person, tenant
from workflows.services.access_tokens import add_own_token

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(administrator())
    return client


def page(model: str, name: str, *args: Any) -> str:
    return reverse(f"admin:{model}_{name}", args=args)


def entry_of(verb: str, subject: str) -> AuditEntry:
    return AuditEntry.objects.filter(verb=verb, object=subject).latest("seq")


def saved(client: Client, user: User, **changes: Any) -> Any:
    """Through the form, as a browser posts it."""
    url = page("auth_user", "change", user.pk)
    form = client.get(url).context["adminform"].form
    fields = {name: form.initial.get(name) for name in form.fields}
    fields["groups"] = [group.pk for group in user.groups.all()]
    fields["user_permissions"] = []
    joined = user.date_joined
    fields |= {"date_joined_0": joined.date(), "date_joined_1": joined.strftime("%H:%M:%S")}
    fields |= changes
    given = {name: value for name, value in fields.items() if value not in (None, False)}
    return client.post(url, given)


def test_what_an_administrator_changes_is_on_record_before_and_after(admin: Client) -> None:
    ada, team = person("ada", email="ada@old.example"), Group.objects.create(name="On call")
    answer = saved(admin, ada, email="ada@new.example", is_staff="on", groups=[team.pk])
    assert answer.status_code == HTTPStatus.FOUND, answer.context["errors"]
    entry = entry_of("set up", f"user:{ada.pk}")
    assert entry.detail["changes"]["email"] == ["ada@old.example", "ada@new.example"]
    assert entry.detail["changes"]["is_staff"] == [False, True]
    assert entry.actor.endswith("admin_1")
    joined = entry_of("set groups and rights", f"user:{ada.pk}").detail["changes"]
    assert joined == {"groups": [[], ["On call"]]}
    history = admin.get(page("auth_user", "history", ada.pk))
    assert history["Location"] == f"/audit/?object=user%3A{ada.pk}"


def test_the_form_of_a_person_says_what_their_address_is_for(admin: Client) -> None:
    form = admin.get(page("auth_user", "change", person("ada").pk)).context["adminform"].form
    assert "forgotten password" in form.fields["email"].help_text


def test_a_password_is_set_on_record_and_never_told(admin: Client) -> None:
    ada = person("ada")
    fields = {"password1": "a-much-better-one", "password2": "a-much-better-one"}
    url = reverse("admin:auth_user_password_change", args=[ada.pk])
    assert admin.post(url, fields).status_code == HTTPStatus.FOUND
    assert entry_of("set password", f"user:{ada.pk}")
    assert "a-much-better-one" not in str(list(AuditEntry.objects.values_list("detail")))


def test_a_new_account_is_on_record_without_its_password(admin: Client) -> None:
    fields = {"username": "ada", "usable_password": "true"}
    fields |= {"password1": "a-much-better-one", "password2": "a-much-better-one"}
    answer = admin.post(page("auth_user", "add"), fields)
    assert answer.status_code == HTTPStatus.FOUND, answer.context["errors"]
    ada = User.objects.get(username="ada")
    detail = entry_of("set up", f"user:{ada.pk}").detail
    assert detail["changes"]["username"] == [None, "ada"]
    assert "a-much-better-one" not in str(detail)


def test_the_last_administrator_cannot_shut_everybody_out(admin: Client) -> None:
    own = administrator()
    answer = saved(admin, own, is_superuser=None)
    assert "the last active administrator" in answer.content.decode()
    assert User.objects.get(pk=own.pk).is_superuser
    person("admin_2", is_superuser=True)  # who cannot enter the admin is of no help
    assert "the last active administrator" in saved(admin, own, is_staff=None).content.decode()
    person("admin_3", is_superuser=True, is_staff=True)
    assert saved(admin, own, is_superuser=None).status_code == HTTPStatus.FOUND


def test_a_closed_account_can_do_nothing_from_its_next_request_on(admin: Client) -> None:
    ada = person("ada")
    client = Client()
    client.force_login(ada)
    assert client.get("/review/").status_code == HTTPStatus.OK
    saved(admin, ada, is_active=None)
    assert client.get("/review/").status_code == HTTPStatus.FOUND


def test_an_account_that_is_opened_again_lets_nobody_in_by_what_they_had_before(
    admin: Client,
) -> None:
    """It was closed for a reason: whoever has its session, or a token, may be who that was."""
    ada, elsewhere = person("ada"), Client()
    elsewhere.post("/login/", {"username": "ada", "password": "ada"})
    assert elsewhere.get("/runs/").status_code == HTTPStatus.OK
    token = add_own_token("Of a script", ada)
    saved(admin, ada, is_active=None)
    saved(admin, ada, is_active="on")
    assert elsewhere.get("/runs/").status_code == HTTPStatus.FOUND
    shown = elsewhere.get("/api/runs/", headers={"Authorization": f"Bearer {token}"})
    assert shown.status_code == HTTPStatus.UNAUTHORIZED
    ended = AuditEntry.objects.filter(verb__in=("ended sessions", "ended token"))
    assert {entry.actor.partition(" ")[2] for entry in ended} == {"admin_1"}


def test_staff_with_every_right_of_djangos_own_makes_nobody_an_administrator() -> None:
    staff = person("staff_1", is_staff=True)
    staff.user_permissions.set(Permission.objects.filter(content_type__app_label="auth"))
    client = Client()
    client.force_login(User.objects.get(pk=staff.pk))
    for model, row in (("auth_user", staff), ("auth_group", Group.objects.create(name="G"))):
        url = page(model, "change", row.pk)
        for answer in (client.get(url), client.post(url, {"is_superuser": "on"})):
            assert answer.status_code == HTTPStatus.FORBIDDEN
        assert client.get(page(model, "add")).status_code == HTTPStatus.FORBIDDEN
    assert not User.objects.get(pk=staff.pk).is_superuser


def test_lost_second_factors_are_removed_on_record(admin: Client) -> None:
    ada = person("ada")
    Authenticator.objects.create(user=ada, type="totp", data={"secret": ""})
    url = reverse("admin:auth_factors", args=[ada.pk])
    assert "TOTP" in admin.get(url).content.decode()
    assert Authenticator.objects.exists()
    admin.post(url)
    assert not Authenticator.objects.exists()
    entry = entry_of("removed second factors", f"user:{ada.pk}")
    assert (entry.actor[-7:], entry.detail) == ("admin_1", {"kinds": ["totp"]})


def test_a_group_goes_on_record_with_what_goes_with_it(admin: Client) -> None:
    team, ada = Group.objects.create(name="On call"), person("ada")
    team.user_set.add(ada)
    assign_perm("workflows.view_tenant", team, tenant())
    pk = team.pk
    asked = admin.get(page("auth_group", "delete", pk)).content.decode()
    assert "On call" in asked
    admin.post(page("auth_group", "delete", pk), {"post": "yes"})
    assert not Group.objects.exists()
    detail = entry_of("deleted group", f"group:{pk}").detail
    assert detail == {"name": "On call", "members": ["ada"], "rights_on_objects": 1}
    assert not User.objects.get(pk=ada.pk).has_perm("workflows.view_tenant", tenant())


def test_no_secret_of_an_account_has_a_page_in_the_admin() -> None:
    for model in ("mfa.Authenticator", "usersessions.UserSession", "socialaccount.SocialToken"):
        assert not admin_site.site.is_registered(apps.get_model(model))
