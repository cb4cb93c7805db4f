"""What the field cases are judged by: payfake's ledger and journal, the pages, the words, the logs.

`payfake` is the rehearsal destination in its own process. It honours idempotency keys, and it can
be asked for what it did by our marker.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from io import StringIO
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from reconciliation.models import Operation, Provider
from reconciliation.rehearsal.client import JournalEntry
from reconciliation.rehearsal.providers import ACTIONS
from tests.destination import RunningDestination
from tests.factories import person, quick_contract, ready_provider, tenant
from tests.waiting import LIMIT_SECONDS, wait_for
from workflows.models import Run
from workflows.services.runs import start

OVER = ("completed", "failed", "cancelled", "held")
MARKER = {"marker": "metadata.operation", "visibility_lag_seconds": 0}
# Longer than a test lets it take to answer.
ANSWER_SECONDS = 40
# Of an answer that a test holds back until it releases it: within the time that it may take.
HELD_BACK_SECONDS = ANSWER_SECONDS - 1


def action(path: str) -> dict[str, Any]:
    """An action of payfake at `path`: by key, found again by marker, its result checked."""
    refunds = ACTIONS["keyed"]["refunds.create"]
    return refunds | {
        "path": path,
        "look_up": {"path": f"{path}?operation={{operation}}", "items": "data"},
        "verify": {"path": f"{path}/{{resource}}", "expect": {"status": "succeeded"}},
    }


def payfake(destination: RunningDestination, **changes: Any) -> Provider:
    """Set payfake up, with `reviewer_1` as the owner of what it leaves open."""
    terms = {"timeout_seconds": ANSWER_SECONDS, "look_up": MARKER} | changes
    actions = {
        "refunds.create": action("/keyed/v1/refunds"),
        "notices.create": action("/keyed/v1/credits"),
    }
    return ready_provider(
        "payfake",
        destination.url,
        contract_version=quick_contract("keyed", **terms),
        settings={"actions": actions},
    )


def order_run(folder: Path, order: str, workflow: str = "refunding", **input: Any) -> Run:
    given = {"order": order, "folder": str(folder), **input}
    return start(workflow, given, tenant=tenant(), labels={"order": order})


def states_of(runs: list[Run]) -> dict[str, int]:
    """How many of `runs` are in each state."""
    states = Run.objects.filter(pk__in=[run.pk for run in runs]).values_list("state", flat=True)
    return {state: list(states).count(state) for state in set(states)}


def all_over(*runs: Run, limit: float = LIMIT_SECONDS) -> None:
    """Wait until every run has ended or waits for a person, and load them."""
    pks = [run.pk for run in runs]
    pending = Run.objects.filter(pk__in=pks).exclude(state__in=OVER)
    wait_for(lambda: not pending.exists(), f"{len(runs)} runs are over", limit=limit)
    for run in runs:
        run.refresh_from_db()


# --- the ledger and the journal of payfake --------------------------------------------------------


def the_operation(run: Run, step: str = "refund") -> Operation:
    return Operation.objects.get(run=run, step=step)


def wait_for_operation(run: Run, step: str = "refund") -> Operation:
    found = Operation.objects.filter(run=run, step=step)
    operation = wait_for(found.first, f"{step} of run {run.pk} is opened")
    assert operation is not None
    return operation


def effects(destination: RunningDestination, operation: Operation) -> int:
    return len(destination.client.effects(operation=str(operation.pk)))


def requests(
    destination: RunningDestination, operation: Operation, method: str = "POST"
) -> list[JournalEntry]:
    """What reached payfake of an operation: its sends, or with GET the questions about it."""
    journal = destination.client.journal(operation=str(operation.pk))
    return [entry for entry in journal if entry.method == method]


def sends(destination: RunningDestination, operation: Operation) -> int:
    return len(requests(destination, operation))


def all_sends(destination: RunningDestination) -> list[JournalEntry]:
    return [entry for entry in destination.client.journal() if entry.method == "POST"]


def wait_until_sent(destination: RunningDestination, run: Run, step: str = "refund") -> Operation:
    """The worker is inside the call: the request has reached payfake."""
    operation = wait_for_operation(run, step)
    wait_for(lambda: sends(destination, operation), f"{step} of run {run.pk} is sent")
    return operation


def ledger(operation: Operation) -> list[tuple[str, str]]:
    return list(operation.transmissions.order_by("number").values_list("purpose", "state"))


# --- what people are told -------------------------------------------------------------------------


def explained(run: Run) -> dict[str, Any]:
    """What `manage.py explain` says of a run."""
    said = StringIO()
    call_command("explain", str(run.pk), "--json", stdout=said)
    document: dict[str, Any] = json.loads(said.getvalue())
    return document


def console(name: str = "reviewer_1") -> Client:
    """The console as this person sees it."""
    client = Client()
    client.force_login(person(name))
    return client


def page_of(run: Run, client: Client | None = None) -> Any:
    """What the run's page shows; the page itself must open."""
    answer = (client or console()).get(reverse("run", args=[run.pk]))
    assert answer.status_code == HTTPStatus.OK
    return answer.context["page"]


def attempts(run: Run) -> list[tuple[str, str]]:
    return list(run.attempts.order_by("fence").values_list("step", "state"))
