"""Setting up in the admin: checked by field, on record, and never a secret shown."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

import pytest
import yaml
from django.contrib.admin import site
from django.contrib.auth import get_user_model
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse

from reconciliation.core.facts import Dispatch
from reconciliation.models import (
    AuditEntry,
    ContractVersion,
    Operation,
    Provider,
    ReviewQueue,
)
from reconciliation.sealing import unseal
from reconciliation.services.contracts import SHIPPED
from reconciliation.services.dispatch import set_dispatch
from reconciliation.services.reconcile import reconcile
from romulus_site.admin_about import about
from tests.console.posting import form_at, url_of
from tests.destination import RunningDestination
from tests.factories import (
    administrator,
    advanced,
    many_held,
    person,
    ready_provider,
    started_run,
    tenant,
)
from workflows.models import Tenant

pytestmark = pytest.mark.django_db

SECRET = "sk_live_marker_of_a_secret"


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(administrator())
    return client


def errors(answer: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = answer.context["adminform"].form.errors
    return found


# --- providers --------------------------------------------------------------------------------


def provider_fields(provider: Provider, **fields: Any) -> dict[str, Any]:
    """What the admin's form posts of `provider` as it is, with `fields` changed."""
    given = {
        "slug": provider.slug,
        "name": provider.name,
        "adapter": provider.adapter,
        "account": provider.account,
        "region": provider.region,
        "base_url": provider.base_url,
        "credential": "",
        "settings": json.dumps(provider.settings),
        "contract_version": str(provider.contract_version_id),
        "visible_parameters": json.dumps(provider.visible_parameters),
        "replay_trust": provider.replay_trust,
        "look_up_trust": provider.look_up_trust,
        "look_ups_per_second": str(provider.look_ups_per_second),
        "default_queue": str(provider.default_queue_id),
    }
    # Beside a field whose default is made anew each time, and what may be taken away meanwhile,
    # the page posts what it showed.
    twice = ("settings", "visible_parameters", "replay_trust", "look_up_trust")
    shown = {f"initial-{name}": given[name] for name in twice}
    return given | shown | fields


def save(admin: Client, provider: Provider, **fields: Any) -> Any:
    url = reverse("admin:reconciliation_provider_change", args=[provider.pk])
    return admin.post(url, provider_fields(provider, **fields))


def test_a_provider_is_saved_on_record_and_its_credential_sealed_and_never_shown(
    admin: Client,
) -> None:
    provider = ready_provider("payments", "http://127.0.0.1:9000")
    answer = save(admin, provider, name="Payments, main account", credential=SECRET)
    assert answer.status_code == HTTPStatus.FOUND, errors(answer)
    provider.refresh_from_db()
    assert provider.name == "Payments, main account"
    assert unseal(provider.credential_sealed).decode() == SECRET
    entry = AuditEntry.objects.get(verb="set up")
    assert (entry.object, entry.actor[-7:]) == ("provider:payments", "admin_1")
    assert entry.detail == {
        "changes": {
            "credential": ["[not shown]", "[not shown]"],
            "name": ["Payments", "Payments, main account"],
        }
    }
    page = reverse("admin:reconciliation_provider_change", args=[provider.pk])
    assert SECRET not in admin.get(page).content.decode()
    history = reverse("admin:reconciliation_provider_history", args=[provider.pk])
    assert SECRET not in admin.get(history).content.decode()


def test_a_form_that_was_open_while_trust_was_taken_away_does_not_give_it_back(
    admin: Client,
) -> None:
    provider = ready_provider("payments", "http://127.0.0.1:9000")
    url = reverse("admin:reconciliation_provider_change", args=[provider.pk])
    trusts = ("replay_trust", "look_up_trust")
    page = admin.get(url).content.decode()
    assert all(f'name="initial-{name}"' in page for name in trusts)
    given = provider_fields(provider, name="Other")
    Provider.objects.update(replay_trust="", contradicted_at=Now(), contradiction="two for one")
    assert admin.post(url, given).status_code == HTTPStatus.FOUND
    provider.refresh_from_db()
    assert (provider.name, provider.replay_trust) == ("Other", "")
    assert provider.contradicted_at is not None
    again = given | {"initial-replay_trust": "", "replay_trust": "Accepted by Ada."}
    assert admin.post(url, again).status_code == HTTPStatus.FOUND
    provider.refresh_from_db()
    assert provider.replay_trust == "Accepted by Ada."


def test_an_empty_credential_keeps_the_one_there_is(admin: Client) -> None:
    provider = ready_provider("payments", "http://127.0.0.1:9000")
    save(admin, provider, credential=SECRET)
    save(admin, provider, name="Other")
    provider.refresh_from_db()
    assert (provider.name, unseal(provider.credential_sealed).decode()) == ("Other", SECRET)


@pytest.mark.parametrize(
    ("fields", "field", "sentence"),
    [
        ({"settings": "{"}, "settings", "no JSON from line 1, character 2 on"),
        (
            {"settings": '{"actions": {"refunds.create": {"method": "POST"}}}'},
            "settings",
            "at actions.refunds.create.path: Field required",
        ),
        ({"settings": '{"actions": {}, "surplus": 1}'}, "settings", "surplus"),
        ({"visible_parameters": '"order"'}, "visible_parameters", "list of names"),
        ({"base_url": "ftp://example.com/"}, "base_url", "an address such as https://"),
        ({"base_url": "javascript:alert(1)"}, "base_url", "an address such as https://"),
        ({"adapter": "nonsense"}, "adapter", "not one of the available choices"),
        ({"look_ups_per_second": "0"}, "look_ups_per_second", "greater than or equal to 0.01"),
        ({"look_ups_per_second": "1001"}, "look_ups_per_second", "less than or equal to 1000"),
    ],
)
def test_what_cannot_work_is_refused_by_its_field(
    admin: Client, fields: dict[str, str], field: str, sentence: str
) -> None:
    provider = ready_provider("payments", "http://127.0.0.1:9000")
    answer = save(admin, provider, **fields)
    assert answer.status_code == HTTPStatus.OK
    assert sentence in " ".join(errors(answer)[field])
    assert not AuditEntry.objects.filter(verb="set up").exists()


def test_an_action_without_the_look_up_that_the_contract_has_is_refused(admin: Client) -> None:
    provider = ready_provider("machines", "http://127.0.0.1:9000")
    settings = json.loads(json.dumps(provider.settings))
    del settings["actions"]["machines.create"]["look_up"]
    answer = save(admin, provider, settings=json.dumps(settings))
    assert "the contract has look-ups" in " ".join(errors(answer)["settings"])


def test_a_new_provider_can_be_added(admin: Client) -> None:
    model = ready_provider("payments", "http://127.0.0.1:9000")
    fields = provider_fields(model, slug="payments-2", credential=SECRET)
    answer = admin.post(reverse("admin:reconciliation_provider_add"), fields)
    assert answer.status_code == HTTPStatus.FOUND, errors(answer)
    added = Provider.objects.get(slug="payments-2")
    assert (added.dispatch, unseal(added.credential_sealed).decode()) == ("on", SECRET)


def test_the_page_tells_the_contract_what_is_missing_and_what_trust_means(admin: Client) -> None:
    provider = ready_provider("payments", "http://127.0.0.1:9000", default_queue=None)
    ReviewQueue.objects.all().delete()
    url = reverse("admin:reconciliation_provider_change", args=[provider.pk])
    text = admin.get(url).content.decode()
    assert "an owner: a review queue" in text
    assert "Rehearsal destination with idempotency keys, version 1" in text
    assert "2026-11-29" in text
    assert "personalities.py" in text
    assert "Probe before trust" in text


# --- dispatch ---------------------------------------------------------------------------------


def test_the_form_of_a_provider_leads_to_where_its_dispatch_is_turned(admin: Client) -> None:
    provider = ready_provider("payments", dispatch="paused")
    page = admin.get(reverse("admin:reconciliation_provider_change", args=[provider.pk]))
    there = "/dispatch/change/?provider=payments"
    assert f'paused. <a href="{there}">' in page.content.decode()
    assert admin.get(there).context["page"].covers == "Payments"


def test_turning_it_on_lets_what_waited_go_on(destination: RunningDestination) -> None:
    provider = ready_provider("payments", destination.url, dispatch="paused")
    run = advanced(started_run("refund"))
    set_dispatch(provider, Dispatch.ON, administrator(), "The outage is over.")
    operation = Operation.objects.get(run=run)
    reconcile(operation.pk)
    assert advanced(run).state == "completed"


def test_setting_what_is_set_changes_nothing() -> None:
    provider = ready_provider("payments")
    assert not set_dispatch(provider, provider.dispatch, administrator(), "For good measure.")
    assert not AuditEntry.objects.filter(verb="set dispatch").exists()


# --- queues and tenants -----------------------------------------------------------------------


def test_owners_that_are_set_get_their_rights_and_are_on_record(admin: Client) -> None:
    (hold,) = many_held(1, ready_provider("payments"))
    queue = hold.queue
    assert queue is not None
    owner = person("owner_1")
    fields = {
        "name": queue.name,
        "slug": queue.slug,
        "tenant": str(tenant().pk),
        "provider": "",
        "action": "",
        "owners": [str(owner.pk)],
        "due_after": "02:00:00",
        "approvals_needed": "2",
        "second_from": "",
        "tell_before": "01:00:00",
        "tell_on_call_after": "00:15:00",
        "tell_owners_after": "01:00:00",
        "tell_administrators_after": "04:00:00",
    }
    url = reverse("admin:reconciliation_reviewqueue_change", args=[queue.pk])
    answer = admin.post(url, fields)
    assert answer.status_code == HTTPStatus.FOUND, errors(answer)
    client = Client()
    client.force_login(get_user_model().objects.get(pk=owner.pk))
    assert form_at(client, url_of(hold.operation)).offered
    entries = {entry.verb: entry for entry in AuditEntry.objects.filter(object="queue:payments")}
    detail = entries["set owners"].detail
    assert (detail["before"], detail["after"]) == (["reviewer_1"], ["owner_1"])
    assert entries["set up"].detail["changes"] == {
        "approvals_needed": [1, 2],
        "due_after": ["4:00:00", "2:00:00"],
        "tenant": [None, "Northwind"],
    }


@pytest.mark.parametrize(
    ("field", "typed"),
    [
        ("due_after", "999999999 00:00:00"),
        ("due_after", "00:00:00"),
        ("due_after", "-5 00:00:00"),
        ("tell_before", "367 00:00:00"),
        ("tell_administrators_after", "99999 00:00:00"),
    ],
)
def test_a_time_that_would_let_cases_be_forgotten_is_refused(
    admin: Client, field: str, typed: str
) -> None:
    queue = ready_provider("payments").default_queue
    assert queue is not None
    url = reverse("admin:reconciliation_reviewqueue_change", args=[queue.pk])
    refused = errors(admin.post(url, {field: typed}))
    assert "366 days" in str(refused[field]) or "Longer than nothing" in str(refused[field])


def test_rights_on_one_queue_are_given_through_its_page_and_on_record(admin: Client) -> None:
    queue = ready_provider("payments").default_queue
    assert queue is not None
    someone = person("second_1")
    change = reverse("admin:reconciliation_reviewqueue_change", args=[queue.pk])
    assert reverse("rights", args=["queue", queue.pk]) in admin.get(change).content.decode()
    url = reverse("rights_change", args=["queue", queue.pk, "person", someone.pk])
    admin.post(url, {"right": ["second", "view_reviewqueue"]})
    fresh = get_user_model().objects.get(pk=someone.pk)
    assert fresh.has_perm("reconciliation.second", queue)
    entry = AuditEntry.objects.get(verb="set rights")
    assert (entry.object, entry.detail) == (
        "queue:payments",
        {
            "of": f"user:{someone.pk} second_1",
            "before": [],
            "after": ["second", "view_reviewqueue"],
        },
    )


def test_a_tenant_can_be_added(admin: Client) -> None:
    answer = admin.post(
        reverse("admin:workflows_tenant_add"), {"name": "Southwind", "slug": "southwind"}
    )
    assert answer.status_code == HTTPStatus.FOUND
    assert Tenant.objects.filter(slug="southwind").exists()


# --- contracts --------------------------------------------------------------------------------


def shipped() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((SHIPPED / "rehearsal-keyed.yaml").read_text())
    return document


def add_contract(admin: Client, document: Any) -> Any:
    text = document if isinstance(document, str) else json.dumps(document, default=str)
    return admin.post(reverse("admin:reconciliation_contractversion_add"), {"text": text})


def test_a_version_of_a_contract_is_added_and_then_never_changes(admin: Client) -> None:
    answer = add_contract(admin, shipped() | {"version": 7})
    assert answer.status_code == HTTPStatus.FOUND, errors(answer)
    row = ContractVersion.objects.get(slug="rehearsal-keyed", version=7)
    assert row.contract.timeout_seconds == 10
    assert AuditEntry.objects.get(verb="added contract").object == "contract:rehearsal-keyed:7"
    change = reverse("admin:reconciliation_contractversion_change", args=[row.pk])
    assert admin.get(change).status_code == HTTPStatus.OK
    assert admin.post(change, {"text": "{}"}).status_code == HTTPStatus.FORBIDDEN


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"timeout_seconds": -1}, "timeout_seconds: Input should be greater than 0"),
        ({"surplus": 1}, "surplus: Extra inputs are not permitted"),
        ({"key": None}, "replay needs a key"),
        ({"sources": []}, "sources"),
        ({}, "version: rehearsal-keyed has a version 1 already"),
    ],
)
def test_a_contract_that_cannot_be_used_is_refused_by_its_field(
    admin: Client, changes: dict[str, Any], sentence: str
) -> None:
    answer = add_contract(admin, shipped() | changes)
    assert answer.status_code == HTTPStatus.OK
    assert sentence in " ".join(errors(answer)["text"])


NO_CONTRACTS = ["{", "- a list", "just words", "x: !!python/name:os.system"]
NO_CONTRACTS += ["reviewed_on: 2026-02-30", "version: " + 5000 * "9", 20_000 * "[" + 20_000 * "]"]


@pytest.mark.parametrize("text", NO_CONTRACTS, ids=lambda text: text[:20])
def test_what_is_no_contract_at_all_is_refused(admin: Client, text: str) -> None:
    assert errors(add_contract(admin, text))["text"]


def test_a_new_version_starts_from_the_text_of_another_under_the_next_number(
    admin: Client,
) -> None:
    keyed = ContractVersion.objects.get(slug="rehearsal-keyed", version=1)
    shown = admin.get(reverse("admin:reconciliation_contractversion_change", args=[keyed.pk]))
    leads_to = f"{reverse('admin:reconciliation_contractversion_add')}?from={keyed.pk}"
    assert leads_to in shown.content.decode()
    text = admin.get(leads_to).context["adminform"].form["text"].value()
    document = yaml.safe_load(text)
    newest = ContractVersion.objects.filter(slug="rehearsal-keyed").latest("version")
    assert document == keyed.document | {"version": newest.version + 1}
    added = admin.post(reverse("admin:reconciliation_contractversion_add"), {"text": text})
    assert added.status_code == HTTPStatus.FOUND
    for nothing in ("", "x", "00000000-0000-7000-8000-000000000000"):
        empty = admin.get(reverse("admin:reconciliation_contractversion_add"), {"from": nothing})
        assert not empty.context["adminform"].form["text"].value()


# --- for whoever sees it the first time -------------------------------------------------------


def test_each_kind_of_row_says_what_it_is_and_the_way_from_nothing_is_shown(admin: Client) -> None:
    undescribed = [model._meta.label for model in site._registry if not about(model)]
    assert undescribed == []
    shown = admin.get("/admin/").content.decode()
    assert "Setting up from nothing" in shown
    assert about(ReviewQueue) in shown


def test_a_queue_that_nobody_owns_says_that_nobody_answers_for_it(admin: Client) -> None:
    queue = ReviewQueue.objects.create(name="Alone", slug="alone")
    address = reverse("admin:reconciliation_reviewqueue_change", args=[queue.pk])
    assert "nobody, and it has no owner" in admin.get(address).content.decode()
    queue.owners.add(person())
    assert "nobody: its owners answer for it" in admin.get(address).content.decode()
