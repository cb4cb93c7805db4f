"""Case A25: bulk deletes in the admin, and the history that must not go along.

20 finished runs with operations, decisions and events; `reviewer_1` has decided ten of them.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from django.apps import apps
from django.test import Client
from django.urls import reverse

from reconciliation.models import AuditEntry, Decision, Evidence, Hold, Operation
from reconciliation.services.audit import first_broken_entry
from tests.console.posting import filled, form_at, url_of
from tests.console.test_admin_people import saved
from tests.events import delivered, waiting
from tests.factories import (
    NOTE,
    administrator,
    advanced,
    many_held,
    owner_of,
    person,
    ready_provider,
)
from workflows.models import Event, Run
from workflows.registry import registry

pytestmark = pytest.mark.django_db

HISTORY = (Run, Operation, Evidence, Hold, Decision, Event, AuditEntry)


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(administrator())
    return client


@pytest.fixture
def holds() -> list[Hold]:
    """Cases that two reviewers have ended, ten each; and an event that a run got."""
    made = many_held(20, ready_provider("payments"))
    for place, hold in enumerate(made):
        assert hold.queue is not None
        reviewer = Client()
        reviewer.force_login(owner_of(hold.queue, f"reviewer_{1 + place // 10}"))
        form = form_at(reviewer, url_of(hold.operation))
        answer = reviewer.post(form.url, filled(form, "abandon"))
        assert answer.status_code == HTTPStatus.SEE_OTHER
        advanced(hold.run)
    run = waiting(correlation="ORD-7025")
    delivered("ORD-7025")
    advanced(run)
    assert not Run.objects.filter(state="held").exists()
    return made


def page(model: str, name: str, *args: Any) -> str:
    return reverse(f"admin:{model}_{name}", args=args)


def history() -> list[Any]:
    return [list(model._default_manager.order_by("pk").values()) for model in HISTORY]


def test_a25_runs_are_neither_deleted_nor_set_to_another_state(
    admin: Client, holds: list[Hold]
) -> None:
    before = history()
    runs = [str(run) for run in Run.objects.values_list("pk", flat=True)]
    for action in ({"action": "delete_selected", "post": "yes"}, {"action": "set_state"}):
        fields = action | {"_selected_action": runs, "state": "completed"}
        admin.post(page("workflows_run", "changelist"), fields)
    for run in runs:
        for url in (page("workflows_run", "change", run), page("workflows_run", "delete", run)):
            answer = admin.post(url, {"state": "completed", "post": "yes"})
            assert answer.status_code == HTTPStatus.FORBIDDEN
    assert history() == before
    assert first_broken_entry() is None


def test_a25_nothing_goes_that_history_hangs_on_and_it_is_said_what_would(
    admin: Client, holds: list[Hold]
) -> None:
    before, one = history(), holds[0]
    assert one.operation is not None
    assert one.queue is not None
    targets: list[tuple[str, Any, str]] = [
        ("workflows_run", one.run_id, "1 operation"),
        ("auth_user", person("reviewer_1").pk, "10 decisions"),
        ("reconciliation_provider", one.operation.provider_id, "20 operations"),
        ("reconciliation_reviewqueue", one.queue_id, "20 holds"),
        ("workflows_tenant", one.run.tenant_id, "runs"),
        ("workflows_eventsource", Event.objects.get().source_id, "1 event"),
        ("reconciliation_contractversion", one.operation.contract_version_id, "20 operations"),
    ]
    for model, pk, would_go in targets:
        for answer in (
            admin.get(page(model, "delete", pk)),
            admin.post(page(model, "delete", pk), {"post": "yes"}),
        ):
            assert answer.status_code == HTTPStatus.FORBIDDEN, model
            text = answer.content.decode()
            assert "Nothing was deleted" in text
            assert would_go in text, model
        admin.post(
            page(model, "changelist"),
            {"action": "delete_selected", "_selected_action": [str(pk)], "post": "yes"},
        )
        assert apps.get_model(*model.split("_")).objects.filter(pk=pk).exists(), model
    assert history() == before


def test_a25_history_names_the_reviewer_whose_account_is_closed(
    admin: Client, holds: list[Hold]
) -> None:
    """What is done in place of deleting: it is on record, and the past reads as before."""
    reviewer = person("reviewer_1")
    saved(admin, reviewer, is_active=None)
    reviewer.refresh_from_db()
    assert not reviewer.is_active
    entry = AuditEntry.objects.get(object=f"user:{reviewer.pk}", verb="set up")
    assert entry.detail["changes"]["is_active"] == [True, False]
    shown = admin.get(url_of(holds[0].operation)).content.decode()
    assert "reviewer_1" in shown
    assert NOTE in shown


def test_a25_runs_of_a_workflow_that_is_gone_are_still_read(
    admin: Client, holds: list[Hold], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = holds[0].run
    before = history()
    monkeypatch.setattr(registry, "_known", {})
    assert admin.get(reverse("run", args=[run.pk])).status_code == HTTPStatus.OK
    shown = admin.get(url_of(holds[0].operation))
    assert NOTE in shown.content.decode()
    assert history() == before
