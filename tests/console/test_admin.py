"""The admin and the ledger: only ever read, for what the reader may see, without payloads."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import escape

from reconciliation.models import (
    Decision,
    Evidence,
    Hold,
    Operation,
    Provider,
)
from reconciliation.services.audit import first_broken_entry
from tests.console.posting import filled, form_at, url_of
from tests.destination import RunningDestination
from tests.factories import (
    NOTE,
    administrator,
    advanced,
    held_operation,
    many_runs,
    person,
    ready_provider,
)
from workflows.models import Run

pytestmark = pytest.mark.django_db

LEDGER = [
    "workflows_run",
    "workflows_attempt",
    "reconciliation_operation",
    "reconciliation_transmission",
    "reconciliation_evidence",
    "reconciliation_hold",
    "reconciliation_decision",
    "reconciliation_auditentry",
]
MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(administrator())
    return client


@pytest.fixture
def decided(admin: Client, destination: RunningDestination) -> Operation:
    """An operation with everything: sends, evidence, a hold and a decision by `reviewer_1`."""
    ready_provider("desk", destination.url)
    operation = held_operation(destination)
    reviewer = Client()
    reviewer.force_login(person())
    form = form_at(reviewer, url_of(operation))
    reviewer.post(form.url, filled(form, "applied"))
    advanced(operation.run)
    return operation


# --- the ledger -------------------------------------------------------------------------------


@pytest.mark.parametrize("model", LEDGER)
def test_the_ledger_is_read_and_never_added_to_changed_or_deleted(
    admin: Client, decided: Operation, model: str
) -> None:
    rows = apps.get_model(*model.split("_")).objects.order_by("pk")
    row, count = rows[0], rows.count()
    listed = admin.get(reverse(f"admin:{model}_changelist"))
    assert listed.status_code == HTTPStatus.OK
    assert "delete_selected" not in listed.content.decode()
    change = reverse(f"admin:{model}_change", args=[row.pk])
    assert admin.get(change).status_code == HTTPStatus.OK
    assert admin.post(change, {"state": "open"}).status_code == HTTPStatus.FORBIDDEN
    add = admin.get(reverse(f"admin:{model}_add"))
    assert add.status_code == HTTPStatus.FORBIDDEN
    delete = admin.post(reverse(f"admin:{model}_delete", args=[row.pk]), {"post": "yes"})
    assert delete.status_code == HTTPStatus.FORBIDDEN
    admin.post(
        reverse(f"admin:{model}_changelist"),
        {"action": "delete_selected", "_selected_action": [str(row.pk)], "post": "yes"},
    )
    assert rows.count() == count


def test_the_history_outlives_every_attempt_to_delete_what_it_hangs_on(
    admin: Client, decided: Operation
) -> None:
    """Case A25."""
    reviewer = person()
    gone = [
        ("auth_user", reviewer.pk),
        ("reconciliation_provider", decided.provider_id),
        ("reconciliation_reviewqueue", Hold.objects.get().queue_id),
        ("reconciliation_contractversion", decided.contract_version_id),
        ("workflows_tenant", decided.run.tenant_id),
    ]
    for model, pk in gone:
        admin.post(reverse(f"admin:{model}_delete", args=[pk]), {"post": "yes"})
        admin.post(
            reverse(f"admin:{model}_changelist"),
            {"action": "delete_selected", "_selected_action": [str(pk)], "post": "yes"},
        )
        assert apps.get_model(*model.split("_")).objects.filter(pk=pk).exists(), model
    assert Run.objects.get(pk=decided.run_id).state == "completed"
    assert Evidence.objects.filter(operation=decided).exists()
    decision = Decision.objects.get()
    assert (decision.by, decision.by_name, decision.note) == (reviewer, "reviewer_1", NOTE)
    assert first_broken_entry() is None


def test_staff_see_no_more_of_the_ledger_than_in_the_console(decided: Operation) -> None:
    staff = person("staff_1", is_staff=True)
    rights = Permission.objects.filter(codename__startswith="view_")
    staff.user_permissions.set(
        rights.exclude(codename__in=["view_tenant", "view_reviewqueue", "view_auditentry"])
    )
    client = Client()
    client.force_login(get_user_model().objects.get(pk=staff.pk))
    for model in LEDGER[:-1]:
        listed = client.get(reverse(f"admin:{model}_changelist"))
        assert listed.context["cl"].result_count == 0, model
    url = reverse("admin:reconciliation_operation_change", args=[decided.pk])
    assert client.get(url).status_code == HTTPStatus.FOUND  # to the index: there is no such one
    audit = client.get(reverse("admin:reconciliation_auditentry_changelist"))
    assert audit.status_code == HTTPStatus.FORBIDDEN


def test_payloads_and_sealed_bytes_are_not_in_the_admin(admin: Client, decided: Operation) -> None:
    for model, pk in (
        ("workflows_run", decided.run_id),
        ("reconciliation_operation", decided.pk),
    ):
        text = admin.get(reverse(f"admin:{model}_change", args=[pk])).content.decode()
        assert "Where is it?" not in text
        assert "request_sealed" not in text


def test_markup_is_shown_as_text(admin: Client, decided: Operation) -> None:
    Run.objects.filter(pk=decided.run_id).update(start_key=MARKUP)
    Provider.objects.update(name=MARKUP)
    Evidence.objects.create(operation=decided, kind="conflict", source=MARKUP, resource=MARKUP)
    for model in (*LEDGER, "reconciliation_provider", "reconciliation_reviewqueue"):
        assert MARKUP not in admin.get(reverse(f"admin:{model}_changelist")).content.decode()
    url = reverse("admin:reconciliation_provider_change", args=[decided.provider_id])
    text = admin.get(url).content.decode()
    assert MARKUP not in text
    assert escape(MARKUP) in text


# --- lists of the ledger ----------------------------------------------------------------------


def test_a_row_of_the_ledger_is_found_by_a_whole_id_alone(
    admin: Client, decided: Operation
) -> None:
    def found(model: str, term: str) -> int:
        listed = admin.get(reverse(f"admin:{model}_changelist"), {"q": term})
        count: int = listed.context["cl"].result_count
        return count

    assert found("reconciliation_operation", str(decided.pk)) == 1
    assert found("reconciliation_operation", str(decided.run_id)) == 1
    assert found("reconciliation_transmission", str(decided.pk)) == 1
    assert found("workflows_run", str(decided.run_id)) == 1
    assert found("workflows_run", "refund") == 0
    assert found("reconciliation_auditentry", f"run:{decided.run_id}") == 0
    assert found("reconciliation_auditentry", f"operation:{decided.pk}") >= 1


@pytest.mark.parametrize("model", ["reconciliation/provider", "auth/user"])
def test_a_field_that_is_none_is_a_wrong_address_and_no_fault_of_ours(
    admin: Client, model: str
) -> None:
    answer = admin.get(f"/admin/{model}/", {"_to_field": "+"})
    assert answer.status_code == HTTPStatus.BAD_REQUEST


def test_a_list_of_the_ledger_counts_no_further_than_it_pages(
    admin: Client, decided: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workflows.admin.long_lists.MOST", 2)
    many_runs(4)
    with CaptureQueriesContext(connection) as asked:
        listed = admin.get(reverse("admin:workflows_run_changelist"), {"state": "held"})
    assert listed.context["cl"].result_count == 2
    of_runs = [each["sql"] for each in asked if 'FROM "workflows_run"' in each["sql"]]
    counts = [sql for sql in of_runs if "COUNT(" in sql]
    assert counts
    assert all("LIMIT 3" in sql for sql in counts), counts
    assert not any("DISTINCT" in sql for sql in of_runs)
