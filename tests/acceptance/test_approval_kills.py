"""Promise P11 with real processes: killed around each commit of an approval, the write that follows
is the one that was approved, it is made once, and nothing is answered twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from guardian.shortcuts import assign_perm, remove_perm

from reconciliation.models import Operation
from tests.acceptance.test_checkpoint_kills import ended
from tests.approving import answered, approver, policy, proposal_of, proposed
from tests.destination import RunningDestination
from tests.factories import advanced, ready_provider, started_run, tenant
from tests.sending import effects
from tests.waiting import wait_for
from tests.workers import ROOT, Crew, environment_of
from workflows.models import Approval, AuthorisationRecord, Event, PolicyVersion, Proposal, Run

pytestmark = pytest.mark.processes


@pytest.fixture(autouse=True)
def payments(destination: RunningDestination, committed_db: str) -> RunningDestination:
    ready_provider("payments", destination.url)
    return destination


def waiting(run: Run) -> Proposal:
    def there() -> bool:
        run.refresh_from_db()
        return run.state == "waiting"

    wait_for(there, f"run {run.pk} waits")
    return proposal_of(run)


def sent_once_as_approved(run: Run, payments: RunningDestination) -> None:
    """One effect, of one operation, by one approval, which was recorded as the reason for it."""
    assert ended(run).state == "completed", run.failure
    operation = Operation.objects.get(run=run)
    proposal = Proposal.objects.get(run=run)
    assert effects(payments) == 1
    assert proposal.used_by == operation.pk
    assert operation.parameters_digest == proposal.parameters_digest
    allowed = AuthorisationRecord.objects.filter(asked="write", operation=operation.pk)
    assert set(allowed.values_list("allowed", flat=True)) == {True}


@pytest.mark.parametrize(
    "failpoint",
    ["wait_opened@propose", "before_decide@propose", "after_decide@propose"],
)
def test_killed_while_it_proposes_people_are_asked_once(
    failpoint: str, workers: Crew, payments: RunningDestination
) -> None:
    policy()
    doomed = workers.start(failpoint=failpoint)
    run = started_run("approved_refund")
    doomed.wait_until_dead()
    workers.start()
    proposal = waiting(run)
    assert effects(payments) == 0
    answered(proposal, approver())
    sent_once_as_approved(run, payments)


@pytest.mark.parametrize(
    "failpoint",
    [
        "before_decide@propose*2",
        "before_dispatch@send_refund",
        "after_dispatch@send_refund",
        "after_answer@send_refund",
    ],
)
def test_killed_when_it_goes_on_the_write_is_made_once(
    failpoint: str, workers: Crew, payments: RunningDestination
) -> None:
    policy()
    doomed = workers.start(failpoint=failpoint)
    run = started_run("approved_refund")
    answered(waiting(run), approver())
    doomed.wait_until_dead()
    workers.start()
    sent_once_as_approved(run, payments)


def test_killed_before_the_send_and_the_right_is_lost_nothing_is_sent(
    workers: Crew, payments: RunningDestination
) -> None:
    """What the dead worker had found allowed is not what the next one finds."""
    user = approver()
    doomed = workers.start(failpoint="before_dispatch@send_refund")
    run = started_run("approved_refund")
    answered(waiting(run), user)
    doomed.wait_until_dead()
    remove_perm("workflows.approve_actions", user, tenant())
    workers.start()
    assert ended(run).state == "held"
    assert effects(payments) == 0


# --- a process in which somebody answers ----------------------------------------------------------


def command(database_url: str, *arguments: str, failpoint: str = "") -> int:
    """Run `manage.py approvals …` in a process of its own; return how that ended."""
    environment = environment_of(database_url) | {"ROMULUS_FAILPOINTS": failpoint}
    line = [sys.executable, "manage.py", *arguments]
    return subprocess.run(line, cwd=ROOT, env=environment, timeout=120, check=False).returncode


def answering(proposal: Proposal, user: Any, verb: str, token: str) -> list[str]:
    return [
        *("approvals", verb, str(proposal.pk), "--by", user.get_username()),
        *("--digest", proposal.parameters_digest, "--token", token),
        *("--note", "It was checked against the order."),
    ]


@pytest.mark.parametrize(
    ("failpoint", "recorded"), [("before_approval", False), ("after_approval", True)]
)
def test_killed_while_it_is_approved_and_approved_again_it_counts_once(
    failpoint: str, recorded: bool, committed_db: str, payments: RunningDestination
) -> None:
    run, proposal = proposed()
    line = answering(proposal, approver(), "approve", str(uuid4()))
    assert command(committed_db, *line, failpoint=failpoint) == -signal.SIGKILL
    assert (Approval.objects.exists(), Event.objects.exists()) == (recorded, recorded)
    assert command(committed_db, *line) == 0
    assert (Approval.objects.count(), Event.objects.count()) == (1, 1)
    advanced(run)
    sent_once_as_approved(run, payments)


@pytest.mark.parametrize(
    ("failpoint", "recorded"), [("before_ask_again", False), ("after_ask_again", True)]
)
def test_killed_while_it_is_asked_again_there_is_one_proposal_that_asks(
    failpoint: str, recorded: bool, committed_db: str, payments: RunningDestination
) -> None:
    run, proposal = proposed()
    user, asker = approver(), approver("asker_1")
    assign_perm("workflows.control_runs", asker, tenant())
    answered(proposal, user)
    remove_perm("workflows.approve_actions", user, tenant())
    assert advanced(run).state == "held"
    line = ["approvals", "again", str(proposal.pk), "--by", "asker_1"]
    assert command(committed_db, *line, failpoint=failpoint) == -signal.SIGKILL
    assert Proposal.objects.filter(state="open").exists() is recorded
    assert command(committed_db, *line) == 0
    again = Proposal.objects.get(state="open")
    assert (again.root, again.parameters_digest) == (proposal.pk, proposal.parameters_digest)
    answered(again, get_user_model().objects.get(pk=approver("second_1").pk))
    assert advanced(run).state == "completed"
    assert effects(payments) == 1


@pytest.mark.parametrize(
    ("failpoint", "recorded"), [("before_policy", False), ("after_policy", True)]
)
def test_killed_while_a_policy_is_put_in_force_it_is_or_is_not(
    failpoint: str, recorded: bool, committed_db: str, payments: RunningDestination
) -> None:
    policy()
    run, proposal = proposed()
    answered(proposal, approver())
    environment = environment_of(committed_db) | {"ROMULUS_FAILPOINTS": failpoint}
    line = [sys.executable, "-m", "tests.acceptance.narrowing"]
    done = subprocess.run(line, cwd=ROOT, env=environment, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    assert PolicyVersion.objects.count() == 1 + recorded
    assert advanced(run).state == ("held" if recorded else "completed")
    assert effects(payments) == (0 if recorded else 1)


@pytest.mark.parametrize(
    ("failpoint", "recorded"), [("before_served", False), ("after_served", True)]
)
def test_killed_while_it_answers_an_executor_elsewhere_no_answer_is_without_its_record(
    failpoint: str, recorded: bool, committed_db: str
) -> None:
    policy()

    def ask(failpoint: str = "") -> subprocess.CompletedProcess[str]:
        environment = environment_of(committed_db) | {"ROMULUS_FAILPOINTS": failpoint}
        line = [sys.executable, "-m", "tests.acceptance.evaluating"]
        return subprocess.run(
            line,
            cwd=ROOT,
            env=environment,
            timeout=120,
            check=False,
            capture_output=True,
            text=True,
        )

    served = AuthorisationRecord.objects.filter(asked="served")
    doomed = ask(failpoint)
    assert (doomed.returncode, doomed.stdout) == (-signal.SIGKILL, "")
    assert served.count() == recorded
    assert ask().stdout == "True"
    assert served.count() == recorded + 1
