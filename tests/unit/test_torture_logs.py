"""What the torture takes for a finding in a log, and what for a blow."""

from __future__ import annotations

import json

import pytest

from romulus_site.torture.logs import Trouble, troubles_of

TRACEBACK = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\n    g()\n'


def logged(error: str, event: str = "step.crashed") -> str:
    return json.dumps({"event": event, "level": "error", "exception": TRACEBACK + error})


@pytest.mark.parametrize(
    "error",
    [
        "django.db.utils.OperationalError: the connection is lost",
        "psycopg.OperationalError: connection failed: FATAL:  the database system is starting up\n"
        "DETAIL:  Consistent recovery state has not been yet reached.",
        "psycopg.errors.AdminShutdown: terminating connection due to administrator command",
        "psycopg_pool.PoolTimeout: couldn't get a connection after 3.00 sec",
        "kombu.exceptions.OperationalError: away",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
    ],
)
def test_what_a_blow_causes_is_no_finding(error: str) -> None:
    assert list(troubles_of("worker-1.log", logged(error, "sweep.failed"))) == []
    assert list(troubles_of("worker-1.log", TRACEBACK + error)) == []


@pytest.mark.parametrize(
    "error",
    [
        "django.db.utils.DatabaseError: server closed the connection unexpectedly",
        "django.db.utils.IntegrityError: duplicate key",
        "AssertionError: the run is locked",
        "django.db.utils.OperationalError: deadlock detected",
        "psycopg.errors.SerializationFailure: could not serialize access due to concurrent update",
        "KeyError: 'attempt'",
    ],
)
def test_every_other_error_is_one(error: str) -> None:
    found = Trouble("worker-1.log", "step.crashed", error)
    assert list(troubles_of("worker-1.log", logged(error))) == [found]
    assert list(troubles_of("worker-1.log", TRACEBACK + error)) == [
        Trouble("worker-1.log", "", error)
    ]


def test_an_outage_that_led_to_another_error_does_not_excuse_it() -> None:
    outage = TRACEBACK + "psycopg.OperationalError: gone\n\nDuring handling of the above …\n\n"
    (found,) = troubles_of("worker-1.log", json.dumps({"exception": outage + TRACEBACK + "X: y"}))
    assert found.error == "X: y"


def test_what_was_cut_off_by_a_kill_is_passed_over() -> None:
    text = logged("KeyError: 1")
    assert list(troubles_of("worker-1.log", text[: len(text) // 2])) == []
    assert list(troubles_of("worker-1.log", "an ordinary line\n")) == []


@pytest.mark.parametrize("event", ["contract.contradicted", "step.taken_back"])
def test_an_alarm_without_a_traceback_is_a_finding(event: str) -> None:
    line = json.dumps({"event": event, "level": "error"})
    assert [each.event for each in troubles_of("worker-1.log", line)] == [event]
