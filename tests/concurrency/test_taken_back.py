"""The database takes back a transaction that settles a step: it is tried again, nothing is lost.

Only what it has certainly taken back: a connection that is lost at the commit is an outage.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.db.models.functions import Now
from structlog.testing import capture_logs

from reconciliation.models import Hold, LookUpPace, Operation
from reconciliation.services.holds import open_run_hold
from reconciliation.services.reconcile import reconcile
from tests.claiming import (
    ATOMIC_RETRIED,
    HOLDING,
    ONCE,
    attempts,
    come_due,
    opening_holds,
    raising,
    ready_run,
)
from tests.destination import RunningDestination
from tests.events import HOLDING as WAITING
from tests.events import begun
from tests.factories import advanced, quick_contract, ready_provider, started_run
from tests.racing import beside, wait_until_blocked
from tests.scripted import scripted_provider
from tests.sending import ledger, the_operation
from tests.waiting import LIMIT_SECONDS
from workflows.services import run_holds
from workflows.services.claims import Claim
from workflows.services.clock import database_now
from workflows.services.executor import advance
from workflows.services.ownership import Keeper
from workflows.services.results import result_of
from workflows.services.run_view import RunView
from workflows.services.taken_back import TRIES

pytestmark = pytest.mark.usefixtures("committed_db")

# As the server reports a victim of a deadlock, and an order that could not have been.
CODES = ["40P01", "40001"]
EVENTS = {
    "at the statement": "TRIGGER {name} AFTER {event}",
    "at the commit": "CONSTRAINT TRIGGER {name} AFTER {event} DEFERRABLE INITIALLY DEFERRED",
}
LOSES_ITS_CONNECTION = "PERFORM pg_terminate_backend(pg_backend_pid())"


def taking_back(code: str) -> str:
    return f"RAISE EXCEPTION 'taken back' USING ERRCODE = '{code}'"


def lets_down(
    event: str, what: str, *, where: str = "at the commit", only: str = "true", times: int = 1
) -> None:
    """Let the server do `what` in the first `times` transactions in which `event` happens, to a row
    that is as `only` says."""
    with connection.cursor() as cursor:
        # A sequence counts on through what is taken back.
        cursor.execute("CREATE SEQUENCE let_down")
        cursor.execute(
            "CREATE FUNCTION let_down() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN IF nextval('let_down') <= {times} THEN {what}; END IF; RETURN NULL; END $$"
        )
        trigger = EVENTS[where].format(name="let_down", event=event)
        cursor.execute(f"CREATE {trigger} FOR EACH ROW WHEN ({only}) EXECUTE FUNCTION let_down()")


def times_tried() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT last_value FROM let_down")
        return int(cursor.fetchone()[0])


def counting() -> Callable[[RunView | None], int]:
    """What a step gives: the how-manieth time it is called."""
    calls = count(1)
    return lambda _: next(calls)


# --- what the author's code has given ---------------------------------------------------------


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("where", EVENTS)
def test_what_a_step_gave_is_written_again(where: str, code: str) -> None:
    """The step itself is not executed again, and no worker was lost."""
    lets_down("INSERT ON workflows_attempt", taking_back(code), where=where)
    run = advanced(ready_run(ONCE, counting()))
    assert (run.state, result_of(run), times_tried()) == ("completed", 1, 3)
    assert attempts(run) == [("act", 1, "committed"), ("after", 1, "committed")]


def test_however_often_it_is_taken_back_that_ends() -> None:
    lets_down("INSERT ON workflows_attempt", taking_back("40P01"), times=99)
    run = ready_run(ONCE, counting())
    with pytest.raises(OperationalError):
        advance(run.pk, Keeper())
    assert (attempts(run), times_tried()) == ([("act", 1, "running")], TRIES)


def test_nobody_knows_what_became_of_a_commit_whose_connection_was_lost() -> None:
    lets_down("INSERT ON workflows_attempt", LOSES_ITS_CONNECTION)
    run = ready_run(ONCE, counting())
    with pytest.raises(OperationalError):
        advance(run.pk, Keeper())
    connection.close()
    assert (attempts(run), times_tried()) == ([("act", 1, "running")], 1)


def losing_its_hold() -> Callable[[Claim, str, str], None]:
    """A bug while a run is held; then, while it is held for that, the connection is lost."""
    tried = count(1)

    def open_hold(claim: Claim, reason: str, message: str) -> None:
        match next(tried):
            case 1:
                raise KeyError("a bug of ours")
            case 2:
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
            case _:
                open_run_hold(claim, reason, message)

    return open_hold


def test_a_hold_whose_connection_was_lost_is_made_up_for() -> None:
    run = ready_run(HOLDING, raising(ValueError("no")))
    with opening_holds(losing_its_hold()):
        assert advanced(run).failure["reason"] == "not_held"
        come_due(run)
        assert advanced(run).failure["reason"] == "step_crashed"
    assert (run.state, Hold.objects.get().run_id) == ("held", run.pk)


def test_an_attempt_that_is_left_to_its_lease_is_told_of() -> None:
    """Nothing can be written any more: neither the hold, nor that there is none."""
    run = ready_run(HOLDING, raising(ValueError("no")))
    lets_down("INSERT ON workflows_attempt", LOSES_ITS_CONNECTION, times=99)
    with opening_holds(losing_its_hold()), capture_logs() as logs:
        with pytest.raises(OperationalError):
            advance(run.pk, Keeper())
        connection.close()
    assert attempts(run) == [("act", 1, "running")]
    assert [each["event"] for each in logs][-1] == "step.left_to_its_lease"


def test_an_atomic_step_has_failed_with_what_it_wrote() -> None:
    """As where a statement of its own is the victim: its retries count."""
    lets_down("INSERT ON workflows_attempt", taking_back("40P01"))
    run = advanced(ready_run(ATOMIC_RETRIED, counting()))
    assert (run.state, attempts(run)) == ("ready", [("act", 1, "failed")])
    run = advanced(run)
    assert (run.state, result_of(run)) == ("completed", 2)


# --- what is worked out again -----------------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    [
        "INSERT ON reconciliation_operation",
        "INSERT ON reconciliation_transmission",
        "INSERT ON reconciliation_evidence",
        "UPDATE OF settled_at ON reconciliation_operation",
    ],
    ids=["claimed to be sent", "sent", "answered", "settled"],
)
@pytest.mark.parametrize("where", EVENTS)
def test_a_write_goes_on_where_its_ledger_is(where: str, event: str) -> None:
    with scripted_provider() as provider:
        patient = quick_contract("blind", timeout_seconds=60)  # on a slow machine too
        ready_provider("desk", provider.url, adapter="http", contract_version=patient)
        run = started_run("ticket_triage")
        lets_down(event, taking_back("40P01"), where=where)
        run = advanced(run)
        operation = the_operation()
        assert (run.state, operation.state, len(provider.requests)) == ("completed", "verified", 1)
    assert ledger(operation) == [("first", "acknowledged")]
    assert {state for _, _, state in attempts(run)} == {"committed"}
    assert times_tried() > 1


def test_a_wait_is_opened_once() -> None:
    lets_down("INSERT ON workflows_wait", taking_back("40P01"))
    run = advanced(begun(WAITING))
    assert (run.state, run.waits.count(), times_tried()) == ("waiting", 1, 2)


# --- what is looked up again ------------------------------------------------------------------


def waiting_for_its_turn(destination: RunningDestination) -> Operation:
    """A write that took effect, whose answer was lost; it is its turn to be asked about now."""
    provider = ready_provider("machines", destination.url)
    soon = database_now() + timedelta(hours=1)
    LookUpPace.objects.create(provider=provider, next_at=soon)
    destination.client.arm("apply_then_drop")
    advanced(started_run("replacement_worker"))
    Operation.objects.update(due_at=Now(), turn_at=Now())
    return the_operation()


def questions(destination: RunningDestination) -> int:
    return sum(entry.method == "GET" for entry in destination.client.journal())


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("where", EVENTS)
@pytest.mark.parametrize(
    ("event", "only"),
    [
        ("INSERT ON reconciliation_evidence", "NEW.source = 'look-up'"),
        ("INSERT ON reconciliation_evidence", "NEW.source = 'result check'"),
        ("UPDATE ON workflows_run", "NEW.state = 'ready'"),
    ],
    ids=["found", "checked", "woken"],
)
def test_what_was_looked_up_is_written_again_and_nobody_is_asked_again(
    destination: RunningDestination, event: str, only: str, where: str, code: str
) -> None:
    operation = waiting_for_its_turn(destination)
    lets_down(event, taking_back(code), where=where, only=only)
    reconcile(operation.pk)
    sources = list(operation.evidence.order_by("pk").values_list("source", flat=True))
    assert (sources, questions(destination)) == (["look-up", "result check"], 2)
    assert (operation.run.state, times_tried()) == ("waiting", 2)
    operation.run.refresh_from_db()
    assert operation.run.state == "ready"


# --- a deadlock -------------------------------------------------------------------------------


def test_the_victim_of_a_deadlock_settles_its_step_again() -> None:
    """Two connections, each of which has what the other one waits for."""
    (opener,) = run_holds._openers
    others: list[Future[Any]] = []
    openings: list[str] = []
    has_its_lock = threading.Event()

    def other() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL deadlock_timeout = '1h'")  # it is not the victim
            cursor.execute("SELECT pg_advisory_xact_lock(1)")
            has_its_lock.set()
            cursor.execute("SELECT 1 FROM workflows_run WHERE id = %s FOR UPDATE", [run.pk])

    def open_hold(claim: Claim, reason: str, message: str) -> None:
        """In the transaction that settles: it has the run, and the first time the other waits."""
        openings.append(reason)
        if len(openings) == 1:
            others.append(do(other))
            assert has_its_lock.wait(LIMIT_SECONDS)
            wait_until_blocked(*others)
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL deadlock_timeout = '1ms'")
                cursor.execute("SELECT pg_advisory_xact_lock(1)")
        opener(claim, reason, message)

    act = counting()
    run = ready_run(HOLDING, lambda view: 1 // (act(view) - 1))
    with beside() as do, opening_holds(open_hold):
        run = advanced(run)
        others[0].result(timeout=LIMIT_SECONDS)
    assert openings == ["step_failed", "step_failed"]
    assert (run.state, attempts(run)) == ("held", [("act", 1, "failed")])
    assert (act(None), Hold.objects.get().reason) == (2, "step_failed")
