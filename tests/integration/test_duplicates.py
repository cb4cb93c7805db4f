"""The duplicate finder: what is at the destination twice is found, kept, and told by exit code."""

from __future__ import annotations

import io
import json
from http import HTTPStatus
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from reconciliation.models import AuditEntry, Hold, Operation, Provider
from reconciliation.services.holds import open_hold
from reconciliation.services.offers import ground_of
from tests.deciding import APPLIED, KEEP_HOLDING, decide
from tests.destination import MACHINES, RunningDestination, machine
from tests.factories import administrator, ready_provider, settled, started_run
from workflows.models import Run
from workflows.services.stopping import cancel_run

pytestmark = pytest.mark.django_db


def machines(destination: RunningDestination, *names: str) -> list[Operation]:
    """Operations that are settled, with one machine each."""
    ready_provider("machines", destination.url)
    runs = [settled(started_run("replacement_worker", name=name)) for name in names]
    return [Operation.objects.get(run=run) for run in runs]


def second_effect(destination: RunningDestination, operation: Operation) -> str:
    """Make what only somebody else can have made: another machine for the same operation."""
    with destination.as_account("acct_demo") as client:
        made = client.post(MACHINES, json=machine(str(operation.pk), name="w1"))
    resource: str = made.json()["id"]
    return resource


def audited(*options: str) -> tuple[int, dict[str, Any]]:
    output, code = io.StringIO(), 0
    try:
        call_command("find_duplicates", "--json", "--per-second=100", *options, stdout=output)
    except CommandError as error:
        code = error.returncode
    return code, json.loads(output.getvalue())


def test_nothing_is_double_where_each_has_one_effect(destination: RunningDestination) -> None:
    machines(destination, "w1", "w2")
    code, found = audited()
    assert (code, found["asked"], found["doubles"]) == (0, 2, [])
    assert Provider.objects.get().contradicted_at is None


def test_a_double_is_reported_kept_once_and_stops_repeats(
    destination: RunningDestination,
) -> None:
    double, single = machines(destination, "w1", "w2")
    other = second_effect(destination, double)
    for _ in range(2):
        code, found = audited("machines")
        assert (code, found["asked"]) == (3, 2)
        (told,) = found["doubles"]
        assert (told["operation"], told["resources"]) == (
            str(double.pk),
            [double.resource, other],
        )
    kept = double.evidence.get(source="duplicate audit")
    assert (kept.kind, kept.resource) == ("conflict", other)
    assert not single.evidence.filter(source="duplicate audit").exists()
    provider = Provider.objects.get()
    assert provider.contradiction == f"{double.resource} and {other} for one operation"
    assert AuditEntry.objects.filter(verb="contract contradicted").count() == 1
    double.refresh_from_db()
    assert double.state == "verified"


def test_a_double_of_what_is_settled_is_held_for_a_person_and_moves_nothing(
    destination: RunningDestination, client: Client
) -> None:
    (double,) = machines(destination, "w1")
    second_effect(destination, double)
    before = Run.objects.values().get()
    for _ in range(2):
        audited("machines")  # one hold, however often it is found
    hold = Hold.objects.get()
    assert (hold.reason, hold.state, hold.operation) == ("conflict_later", "open", double)
    assert Run.objects.values().get() == before

    offered = {offer.kind for offer in ground_of(hold).offers if offer.allowed}
    assert offered == {APPLIED, KEEP_HOLDING}
    client.force_login(administrator())
    page = client.get(reverse("operation", args=[double.pk]))
    assert page.status_code == HTTPStatus.OK
    assert "Its run has gone on and is not moved by it." in page.content.decode()
    decide(hold, APPLIED, by=administrator(), resource=double.resource)
    hold.refresh_from_db()
    double.refresh_from_db()
    assert (hold.state, double.state) == ("decided", "verified")
    assert Run.objects.values().get() == before


def test_a_run_may_be_held_beside_a_conflict_of_what_it_has_settled(
    destination: RunningDestination,
) -> None:
    (double,) = machines(destination, "w1")
    second_effect(destination, double)
    audited("machines")
    open_hold(double.run_id, None, None, "step_failed", "It is held for something else.")
    assert set(Hold.objects.filter(state="open").values_list("reason", flat=True)) == {
        "conflict_later",
        "step_failed",
    }
    Run.objects.filter(pk=double.run_id).update(state="held", finished_at=None)
    cancel_run(double.run_id, by="ada")
    assert Hold.objects.get(state="open").reason == "conflict_later"


def test_what_cannot_be_listed_or_asked_for_is_told_of(destination: RunningDestination) -> None:
    machines(destination, "w1")
    ready_provider("desk", destination.url)
    settled(started_run("ticket_triage"))
    destination.client.arm("lookup_unavailable", times=None)
    code, found = audited()
    assert (code, found["asked"], found["unanswered"], found["not_listed"]) == (0, 0, 1, 1)


def test_an_unknown_provider_is_refused() -> None:
    with pytest.raises(CommandError, match="There is no provider 'nobody'"):
        call_command("find_duplicates", "nobody")
