"""A process that carries out a bulk action dies between two cases: another goes on, and what was
done is not done again."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from django.contrib.auth import get_user_model
from guardian.shortcuts import assign_perm

from reconciliation.core.review_work import BulkKind
from reconciliation.models import AuditEntry, BulkAction, Hold, Notification
from reconciliation.services.bulk import Wanted, carry_out, confirm, hint_open_actions
from tests.factories import many_held, owner_of, person, ready_provider
from tests.workers import ROOT, environment_of
from workflows.services.clock import database_now

pytestmark = pytest.mark.processes

CODE = """
import sys, uuid, django
django.setup()
from reconciliation.services.bulk import carry_out
carry_out(uuid.UUID(sys.argv[1]))
"""


def carried_out_elsewhere(database_url: str, action: BulkAction, failpoint: str) -> int:
    """Carry it out in a process of its own that dies at `failpoint`; return how it ended."""
    environment = environment_of(database_url) | {"ROMULUS_FAILPOINTS": failpoint}
    command = [sys.executable, "-c", CODE, str(action.pk)]
    return subprocess.run(command, cwd=ROOT, env=environment, timeout=60, check=False).returncode


@pytest.mark.parametrize(
    ("failpoint", "done"),
    [("before_bulk_item*2", 1), ("after_bulk_item*2", 2), ("before_bulk_end", 3)],
)
def test_what_a_killed_process_left_is_done_once(
    committed_db: str, failpoint: str, done: int
) -> None:
    provider = ready_provider("payments")
    lead = owner_of(provider.default_queue, "lead_1")
    assign_perm("reconciliation.assign", lead, provider.default_queue)
    lead = get_user_model().objects.get(pk=lead.pk)
    holds = [hold.pk for hold in many_held(3, provider)]
    had = owner_of(provider.default_queue, "reviewer_2")
    Hold.objects.filter(pk__in=holds[:2]).update(assignee=had)
    action = confirm(Wanted(BulkKind.ASSIGN, to=person()), holds, lead, provider.pk)
    assert carried_out_elsewhere(committed_db, action, failpoint) == -signal.SIGKILL
    assert action.items.filter(state="done").count() == done
    assert AuditEntry.objects.filter(verb="assigned").count() == done
    # The dead process has it for itself still; when that is over, the sweep finds it.
    assert hint_open_actions() == 0
    BulkAction.objects.update(taken_until=database_now())
    assert hint_open_actions() == 1
    carry_out(action.pk)
    action.refresh_from_db()
    assert action.ended_at is not None
    assert action.items.filter(state="done").count() == 3
    assert Hold.objects.filter(assignee__username="reviewer_1").count() == 3
    assert AuditEntry.objects.filter(verb="assigned").count() == 3
    assert Notification.objects.get(kind="taken").person == had
