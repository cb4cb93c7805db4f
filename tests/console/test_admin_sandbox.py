"""Setting a sandbox up in the admin: never the account that real work goes to."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from reconciliation.models import AuditEntry, Rehearsal, Sandbox
from reconciliation.sealing import seal, unseal
from reconciliation.services.rehearsals import sandbox_of, stand_in_for
from tests.factories import administrator, ready_provider
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db

ADD = reverse("admin:reconciliation_sandbox_add")


@pytest.fixture
def admin_client(client: Client) -> Client:
    client.force_login(administrator())
    return client


def live() -> Any:
    return ready_provider("payments", adapter="http", credential_sealed=seal(b"sk_live"))


def filled(provider: Any, **changes: str) -> dict[str, str]:
    return {
        "provider": str(provider.pk),
        "base_url": provider.base_url,
        "account": provider.account,
        "region": "",
        "action": "refunds.create",
        "parameters": '{"order": "{unique}", "amount": 1, "currency": "USD"}',
        "credential": "sk_test",
    } | changes


def test_a_sandbox_is_saved_with_its_credential_sealed_and_on_record(
    admin_client: Client,
) -> None:
    provider = live()
    answer = admin_client.post(ADD, filled(provider))
    assert answer.status_code == 302, answer.content.decode()
    sandbox = Sandbox.objects.get()
    assert unseal(bytes(sandbox.credential_sealed)) == b"sk_test"
    assert sandbox_of(provider) == sandbox
    entry = AuditEntry.objects.get(verb="set up", object="sandbox:payments")
    assert "sk_test" not in str(entry.detail)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"credential": "sk_live"}, "is the account that real work goes to"),
        ({"action": "cards.burn"}, "no action &#x27;cards.burn&#x27; is declared"),
        ({"parameters": "[1]"}, "parameters: a JSON object"),
    ],
)
def test_what_cannot_be_rehearsed_in_is_refused(
    admin_client: Client, changes: dict[str, str], said: str
) -> None:
    answer = admin_client.post(ADD, filled(live(), **changes))
    assert said in answer.content.decode()
    assert not Sandbox.objects.exists()


def test_what_stands_in_is_not_offered_and_rehearsals_are_only_read(
    admin_client: Client,
) -> None:
    provider = ready_provider("payments")
    stand_in = stand_in_for(sandbox_of(provider), provider.base_url)
    page = admin_client.get(ADD).content.decode()
    assert f'value="{provider.pk}"' in page
    assert f'value="{stand_in.pk}"' not in page
    row = Rehearsal.objects.create(
        provider=provider,
        contract_version=provider.contract_version,
        started_at=database_now(),
        complete=True,
        claims={"replay": "confirmed"},
        cases=[],
        breaches=0,
    )
    url = reverse("admin:reconciliation_rehearsal_change", args=[row.pk])
    assert admin_client.get(url).status_code == 200
    assert admin_client.post(url, {"breaches": "7"}).status_code == 403
