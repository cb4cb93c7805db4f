"""Whose session with the server is over is gone: its leases end. In doubt the leases decide."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now
from pytest_django import Settings

from tests.claiming import ready_run
from tests.databases import url_of
from tests.pooler import pooler
from tests.waiting import wait_for
from workflows.models import Attempt, Run, Worker
from workflows.selectors import live_workers
from workflows.selectors.health import health
from workflows.selectors.worker_list import workers_page
from workflows.services.claims import claim_run
from workflows.services.clock import database_now
from workflows.services.gone_workers import GoneWorkers
from workflows.services.ownership import Keeper, session_has_ended
from workflows.sql import QUERIES, fetch
from workflows.sql.statement import Statement

pytestmark = pytest.mark.usefixtures("committed_db")


@pytest.fixture
def session(committed_db: str) -> Iterator[psycopg.Connection]:
    """Another process's session."""
    with psycopg.connect(committed_db, autocommit=True) as opened:
        yield opened


def seen(worker: Worker, session: psycopg.Connection) -> None:
    """The worker renews its leases by this session."""
    told = {"worker": worker.pk, "session": session.info.backend_pid}
    told |= {"broker_away": None, "swept": None}
    Statement("seen", QUERIES["seen"]).fetch(session, told)


def worker_of(session: psycopg.Connection) -> Worker:
    worker = Worker.objects.create(host="there", pid=1, workflows=[])
    seen(worker, session)
    return worker


def held_run(worker: Worker) -> Run:
    run = ready_run()
    assert claim_run(run.pk, worker.pk)
    return run


def lease_left(run: Run) -> float:
    """Seconds until its lease ends."""
    run.refresh_from_db()
    assert run.lease_expires_at is not None
    return (run.lease_expires_at - database_now()).total_seconds()


def end(session: psycopg.Connection) -> None:
    pid = session.info.backend_pid
    session.close()

    def over() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [pid])
            return not cursor.rowcount

    wait_for(over, "the server has noticed")


def taken_for_gone() -> list[Worker]:
    rows = fetch("gone_workers", {"lease": 15.0})
    return list(Worker.objects.filter(pk__in=[row["id"] for row in rows]))


def test_the_leases_of_a_worker_whose_session_is_over_end(session: psycopg.Connection) -> None:
    worker = worker_of(session)
    run, elsewhere = held_run(worker), held_run(Worker.objects.create(host="", pid=2, workflows=[]))
    look = GoneWorkers()
    assert look() == 0
    end(session)
    assert look() == 0  # one look is not enough
    assert lease_left(run) > 10
    assert wait_for(look, "it is gone for long enough") == 1
    assert (lease_left(run) < 0, lease_left(elsewhere) > 10) == (True, True)
    taken_over = claim_run(run.pk, Worker.objects.create(host="", pid=3, workflows=[]).pk)
    assert taken_over is not None
    assert taken_over.losses == 1
    assert look() == 0  # nothing is left of it
    lost = Attempt.objects.get(run=run, state="lost")
    assert lost.error == "its worker went quiet, and its lease ended"


def test_a_worker_that_is_gone_is_shown_as_that_at_once_until_it_is_heard_of(
    session: psycopg.Connection,
) -> None:
    worker = worker_of(session)
    look = GoneWorkers()
    end(session)
    assert list(live_workers()) == [worker]

    def is_shown_as_gone() -> bool:
        look()
        return not live_workers()

    wait_for(is_shown_as_gone, "it is gone for long enough")
    assert health(database_now())[0].text.startswith("No worker is alive")
    page, _ = workers_page(Run.objects.all(), database_now())
    assert (page.alive, len(page.quiet)) == ((), 1)
    assert page.quiet[0].sentence.endswith("Its session with the database ended. It holds nothing.")
    with psycopg.connect(url_of(connection.settings_dict), autocommit=True) as following:
        seen(worker, following)
    assert list(live_workers()) == [worker]


def test_a_worker_that_has_another_session_by_the_second_look_is_not_gone(
    session: psycopg.Connection,
) -> None:
    worker = worker_of(session)
    run = held_run(worker)
    look = GoneWorkers()
    end(session)
    assert look() == 0
    with psycopg.connect(url_of(connection.settings_dict), autocommit=True) as following:
        seen(worker, following)
        look_again = iter(range(100))
        wait_for(lambda: look() or next(look_again) == 99, "many looks")
        assert lease_left(run) > 10


def test_one_that_is_alive_after_all_renews_the_lease_that_was_ended() -> None:
    keeper = Keeper()
    run = ready_run()
    claim = claim_run(run.pk, keeper.worker)
    assert claim is not None
    keeper.begin(claim.attempt, 60)
    keeper.renew()
    fetch("end_leases", {"workers": [keeper.worker], "batch": 10})
    assert lease_left(run) < 0
    assert live_workers()  # its session is there, whoever thought otherwise
    keeper.renew()
    assert lease_left(run) > 10


def test_what_ended_with_the_server_is_left_to_the_leases(session: psycopg.Connection) -> None:
    worker = worker_of(session)
    end(session)
    assert taken_for_gone() == [worker]
    Worker.objects.update(server_since=F("server_since") - timedelta(seconds=1))
    assert taken_for_gone() == []


def test_who_was_not_seen_within_a_lease_is_left_to_it(session: psycopg.Connection) -> None:
    worker_of(session)
    end(session)
    Worker.objects.update(seen_at=Now() - timedelta(seconds=16))
    assert taken_for_gone() == []


def test_behind_a_pooler_no_session_is_a_worker_s_own(settings: Settings) -> None:
    settings.ROMULUS_PREPARE = False
    with pooler(connection.settings_dict) as pool:
        url = url_of(pool.settings)
        with psycopg.connect(url, autocommit=True, prepare_threshold=None) as pooled:
            worker = worker_of(pooled)
        worker.refresh_from_db()
        assert worker.session is None
        assert taken_for_gone() == []


def test_a_keeper_notices_that_its_session_has_ended(session: psycopg.Connection) -> None:
    connection.ensure_connection()
    assert not session_has_ended()
    session.execute("SELECT pg_terminate_backend(%s)", [connection.connection.info.backend_pid])
    wait_for(session_has_ended, "its end is heard")
    connection.close()
    assert not session_has_ended()
    keeper = Keeper()
    keeper.renew()
    known = Worker.objects.get(pk=keeper.worker).session
    assert known == connection.connection.info.backend_pid
