"""Promise P13 with a real process: frozen around its claim to send, it asks the switch again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from reconciliation.adapters.uptime import uptime
from reconciliation.core.facts import Dispatch
from reconciliation.models import Provider
from reconciliation.services.dispatch import set_dispatch
from reconciliation.services.transmit import STOOD_STILL
from tests.destination import RunningDestination
from tests.factories import administrator, ready_provider, started_run
from tests.sending import ledger, posts, the_operation
from tests.waiting import LIMIT_SECONDS, wait_for
from tests.workers import ROOT, environment_of

pytestmark = pytest.mark.processes


@pytest.mark.parametrize(
    ("failpoint", "written_down"),
    [("before_dispatch", []), ("after_dispatch", [("first", "not_sent")])],
)
def test_a_worker_that_was_frozen_while_the_switch_was_thrown_sends_nothing_when_it_thaws(
    failpoint: str,
    written_down: list[tuple[str, str]],
    committed_db: str,
    destination: RunningDestination,
) -> None:
    ready_provider("payments", destination.url)
    admin = administrator()
    run = started_run()
    environment = environment_of(committed_db) | {
        "ROMULUS_FAILPOINTS": failpoint,
        "ROMULUS_LEASE_SECONDS": "600",
    }
    command = [sys.executable, "-m", "tests.acceptance.stopping", str(run.pk)]
    frozen = subprocess.Popen(command, cwd=ROOT, env=environment)
    try:
        wait_for(lambda: os.waitpid(frozen.pid, os.WUNTRACED | os.WNOHANG)[0], "it is frozen")
        since = uptime()
        set_dispatch(Provider.objects.get(), Dispatch.OFF, admin, "An incident there.")
        wait_for(lambda: uptime() - since > STOOD_STILL.total_seconds(), "it stood still")
        os.kill(frozen.pid, signal.SIGCONT)
        assert frozen.wait(LIMIT_SECONDS) == 0
    finally:
        frozen.kill()
        frozen.wait(LIMIT_SECONDS)
    run.refresh_from_db()
    assert (run.state, run.failure["reason"]) == ("waiting", "dispatch")
    assert posts(destination) == []
    operation = the_operation()
    assert (operation.state, ledger(operation)) == ("intended", written_down)
