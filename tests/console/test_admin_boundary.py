"""The boundary in the admin: what a policy would change is shown before it is put in force."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from guardian.shortcuts import assign_perm

from reconciliation.models import AuditEntry, DecisionPoint
from reconciliation.sealing import unseal
from tests.approving import answered, approver, policy, proposed
from tests.destination import RunningDestination
from tests.factories import administrator, advanced, person, ready_provider, tenant
from workflows.models import AccessToken, AuthorisationRecord, PolicyVersion, ServiceAccount

pytestmark = pytest.mark.django_db

ADD = "/admin/workflows/policyversion/add/"
NOTE = "The limit was raised by the board."
ALLOWING: dict[str, Any] = {
    "tools": [{"action": "refunds.create"}],
    "grants": [{"subjects": ["workflow:*"], "actions": ["refunds.create"]}],
}


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(administrator())
    return client


def posted(admin: Client, document: Any, button: str, **fields: Any) -> Any:
    text = document if isinstance(document, str) else json.dumps(document)
    given = {"tenant": tenant().pk, "document": text, "note": NOTE, button: "1"}
    return admin.post(ADD, given | fields)


def test_what_would_change_is_shown_over_recent_answers(
    admin: Client, destination: RunningDestination
) -> None:
    ready_provider("payments", destination.url)
    policy()
    for amount in ("50.00", "500.00"):
        run, proposal = proposed(amount=amount)
        answered(proposal, approver())
        assert advanced(run).state == "completed"
    limited = {"subjects": ["workflow:*"], "actions": ["refunds.*"], "max_amount": "100"}
    document = ALLOWING | {"grants": [limited | {"currency": "USD"}]}
    shown = posted(admin, document, "try").context["preview"]
    # At the proposal and at the write, of the larger one alone.
    assert (shown.looked_at, shown.not_kept) == (4, 0)
    assert {(each.now_allowed, each.would) for each in shown.changes} == {
        (False, "workflow approved_refund may do this up to USD 100.00.")
    }
    assert len(shown.changes) == 2
    assert PolicyVersion.objects.count() == 1
    # Nothing changes by the one that is in force.
    assert posted(admin, ALLOWING, "try").context["preview"].changes == ()


def test_what_is_not_kept_is_said(admin: Client) -> None:
    version = policy()
    AuthorisationRecord.objects.create(
        tenant=tenant(),
        asked="served",
        subject="agent:x",
        action="refunds.create",
        allowed=True,
        reason="",
        findings=[],
        policy=version,
        inputs_digest="",
    )
    shown = posted(admin, ALLOWING, "try").context["preview"]
    assert (shown.looked_at, shown.not_kept) == (0, 1)


def test_it_is_put_in_force_as_another_version(admin: Client) -> None:
    policy()
    assert posted(admin, ALLOWING, "save").status_code == HTTPStatus.FOUND
    version = PolicyVersion.objects.get(tenant=tenant(), version=2)
    assert (version.note, version.document["tools"]) == (NOTE, [{"action": "refunds.create"}])
    assert posted(admin, ALLOWING, "save", tenant="").status_code == HTTPStatus.FOUND
    assert PolicyVersion.objects.get(tenant=None).version == 1


@pytest.mark.parametrize("document", ["{", '{"grant": []}', '{"tools": [{"action": ""}]}'])
def test_what_cannot_work_is_not_saved(admin: Client, document: str) -> None:
    answer = posted(admin, document, "save")
    assert answer.context["form"].errors["document"]
    assert not PolicyVersion.objects.exists()


def test_a_note_of_which_nothing_can_be_read_is_none(admin: Client) -> None:
    answer = posted(admin, ALLOWING, "save", note="\u200b" * 40)
    assert "Write at least" in answer.content.decode()
    assert not PolicyVersion.objects.exists()


def test_a_version_is_not_changed_and_not_everybody_adds_one(admin: Client) -> None:
    version = policy()
    change = reverse("admin:workflows_policyversion_change", args=[version.pk])
    assert admin.post(change, {"note": "x"}).status_code == HTTPStatus.FORBIDDEN
    clerk = Client()
    clerk.force_login(person("clerk_1", is_staff=True))
    assert clerk.get(ADD).status_code == HTTPStatus.FORBIDDEN


@pytest.mark.parametrize("name", ["policyversion", "accesstoken"])
def test_a_tenant_that_staff_may_not_see_is_not_offered_and_not_taken(name: str) -> None:
    clerk = person("clerk_1", is_staff=True)
    clerk.user_permissions.add(Permission.objects.get(codename=f"add_{name}"))
    assign_perm("workflows.view_tenant", clerk, tenant())
    hidden = tenant("southwind")
    client = Client()
    client.force_login(User.objects.get(pk=clerk.pk))
    url = reverse(f"admin:workflows_{name}_add")
    page = client.get(url).content.decode()
    assert "Northwind" in page
    assert "Southwind" not in page
    fields = {"document": json.dumps(ALLOWING), "note": NOTE, "save": "1", "label": "Batch jobs"}
    answer = client.post(url, fields | {"tenant": hidden.pk})
    assert "Select a valid choice" in answer.content.decode()
    assert not PolicyVersion.objects.exists()
    assert not AccessToken.objects.exists()


def test_a_token_is_shown_once(admin: Client) -> None:
    url = reverse("admin:workflows_accesstoken_add")
    answer = admin.post(url, {"label": "Batch jobs", "tenant": tenant().pk})
    made = answer.context["made"]
    row = AccessToken.objects.get()
    assert made.startswith(str(row.pk))
    assert "no-store" in answer.headers["Cache-Control"]
    page = admin.get(reverse("admin:workflows_accesstoken_change", args=[row.pk]))
    assert made.partition(".")[2] not in page.content.decode()
    admin.post(reverse("admin:workflows_accesstoken_end", args=[row.pk]))
    row.refresh_from_db()
    assert row.ended_at is not None


def changes_of_last(verb: str) -> Any:
    """What the audit record says was changed last: before and after, by field."""
    return AuditEntry.objects.filter(verb=verb).latest("seq").detail["changes"]


def test_an_agent_keeps_its_name_and_is_switched_off(admin: Client) -> None:
    url = reverse("admin:workflows_serviceaccount_add")
    fields = {"kind": "agent", "slug": "bot", "name": "Bot", "owner": administrator().pk}
    assert admin.post(url, fields | {"active": "on"}).status_code == HTTPStatus.FOUND
    bot = ServiceAccount.objects.get()
    change = reverse("admin:workflows_serviceaccount_change", args=[bot.pk])
    admin.post(change, {"slug": "other", "name": "Bot", "owner": administrator().pk})
    bot.refresh_from_db()
    assert (bot.slug, bot.active, str(bot)) == ("bot", False, "agent bot")
    assert changes_of_last("set up") == {"active": [True, False]}


def test_a_decision_point_is_set_up_and_its_credential_never_shown(admin: Client) -> None:
    url = reverse("admin:reconciliation_decisionpoint_add")
    fields = {"name": "PDP", "slug": "pdp", "timeout_seconds": "2", "credential": "s3cret-token"}
    refused = admin.post(url, fields | {"base_url": "http://10.0.0.1"})
    assert refused.context["adminform"].form.errors["base_url"]
    admin.post(url, fields | {"base_url": "http://127.0.0.1:9"})
    point = DecisionPoint.objects.get()
    assert unseal(point.credential_sealed) == b"s3cret-token"
    page = admin.get(reverse("admin:reconciliation_decisionpoint_change", args=[point.pk]))
    assert b"s3cret-token" not in page.content
    change = reverse("admin:reconciliation_decisionpoint_change", args=[point.pk])
    changed = {"base_url": "http://127.0.0.1:9", "timeout_seconds": "3", "credential": "an0ther"}
    admin.post(change, fields | changed)
    assert changes_of_last("set up") == {
        "credential": ["[not shown]", "[not shown]"],
        "timeout_seconds": ["2.0", "3.0"],
    }
