"""The page of an operation: sends in full, and records beside what was intended."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from guardian.shortcuts import assign_perm

from reconciliation.models import Operation, Transmission
from tests.console.posting import url_of
from tests.destination import RunningDestination
from tests.factories import (
    administrator,
    advanced,
    person,
    reader,
    ready_provider,
    started_run,
)

pytestmark = pytest.mark.django_db

DASHBOARD = "https://dashboard.example.com/refunds/{resource}"


@pytest.fixture
def refunded(client: Client, destination: RunningDestination) -> Operation:
    """A refund that took effect; `client` is signed in as its owner."""
    ready_provider("payments", destination.url, dashboard_url=DASHBOARD)
    client.force_login(person())
    return Operation.objects.get(run=advanced(started_run("refund")))


@pytest.fixture
def mismatched(client: Client, destination: RunningDestination) -> Operation:
    """A refund whose answer shows another amount than was intended."""
    ready_provider("payments", destination.url)
    client.force_login(person())
    destination.client.arm("mismatched_receipt")
    return Operation.objects.get(run=advanced(started_run("refund")))


def page_at(client: Client, operation: Operation) -> Any:
    return client.get(url_of(operation)).context["page"]


def text_of(pieces: Any) -> str:
    return "".join(piece.text for piece in pieces)


def test_what_differs_stands_on_top_with_the_characters_marked(
    client: Client, mismatched: Operation
) -> None:
    (sides,) = page_at(client, mismatched).sides
    assert sides.differ == 1
    first, *others = sides.fields
    assert (first.name, text_of(first.meant), text_of(first.shows)) == ("amount", "12500", "12501")
    assert [piece.kind for piece in first.shows] == ["same", "other"]
    assert {"currency", "order", "account", "our ID"} <= {side.name for side in others}
    assert all(side.same for side in others)
    assert '<details class="sides" open>' in client.get(url_of(mismatched)).content.decode()


def test_a_record_that_fits_says_so_and_is_folded(client: Client, refunded: Operation) -> None:
    (sides,) = page_at(client, refunded).sides
    assert sides.differ == 0
    assert {side.name for side in sides.fields} >= {"amount", "order"}
    text = client.get(url_of(refunded)).content.decode()
    assert '<details class="sides">' in text
    assert f"all {len(sides.fields)} fields that it shows fit" in text


def test_without_payloads_it_shows_which_fields_fit_and_no_value(
    destination: RunningDestination, mismatched: Operation
) -> None:
    looks = Client()
    looks.force_login(reader(mismatched.provider.default_queue))  # type: ignore[arg-type]
    (sides,) = page_at(looks, mismatched).sides
    assert [side.name for side in sides.fields if not side.same] == ["amount"]
    assert {text_of(side.shows) for side in sides.fields} == {"hidden"}


def test_what_the_allow_list_hides_is_kept_nowhere(
    client: Client, destination: RunningDestination
) -> None:
    ready_provider("payments", destination.url, visible_parameters=["amount"])
    operation = Operation.objects.get(run=advanced(started_run("refund", order="ORD-99")))
    kept = operation.evidence.get(kind="receipt").agreements
    assert {"field": "amount", "found": "12500"} in kept
    assert {"field": "order", "found": "[not shown]"} in kept


def test_every_send_is_there_in_full(client: Client, refunded: Operation) -> None:
    sent = Transmission.objects.get(operation=refunded)
    (rung,) = (each for each in page_at(client, refunded).ladder if not each.is_note)
    assert (rung.id, rung.attempt) == (sent.pk, sent.attempt)
    assert rung.reached == "the whole answer came"
    assert rung.by.endswith(f"fence {sent.fence}")
    text = client.get(url_of(refunded)).content.decode()
    for said in (str(sent.attempt), sent.provider_request_id or "none came"):
        assert said in text


def test_it_leads_to_the_provider_its_runbook_and_its_own_page_of_the_record(
    client: Client, refunded: Operation
) -> None:
    page = page_at(client, refunded)
    assert page.provider_url == "/providers/payments/"
    assert page.contract.runbook_url == "/providers/payments/#runbook"
    assert page.result_url == DASHBOARD.format(resource=refunded.resource)
    text = client.get(url_of(refunded)).content.decode()
    assert f'href="{page.result_url}" rel="noreferrer noopener"' in text
    # Who may not see the provider is not led to a page that is not there.
    looks = Client()
    looks.force_login(only_of_the_tenant(refunded))
    assert page_at(looks, refunded).provider_url == ""


def only_of_the_tenant(operation: Operation) -> Any:
    user = person("auditor_1")
    assign_perm("workflows.view_tenant", user, operation.run.tenant)
    return user


def test_an_address_that_could_lead_elsewhere_is_refused_where_it_is_set_up(
    refunded: Operation,
) -> None:
    provider = refunded.provider
    admin = Client()
    admin.force_login(administrator())
    url = reverse("admin:reconciliation_provider_change", args=[provider.pk])
    form = admin.get(url).context["adminform"].form
    given = {name: form.initial.get(name) or "" for name in form.fields}
    answer = admin.post(url, given | {"dashboard_url": "javascript:alert(1)//{resource}"})
    assert "give an address such as" in answer.content.decode()
