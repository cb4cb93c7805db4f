"""The embedded broker's transport after an outage: what the torture has found it to lack."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import kombu
import psycopg
import pytest
from django.db import connection

from romulus_site.embedded import broker_options, ensure_pgmq
from tests.databases import administration

QUEUE = kombu.Queue("advance", routing_key="advance", no_declare=True)


@pytest.fixture
def broker(committed_db: str) -> Iterator[kombu.Connection]:
    options = broker_options(connection.settings_dict)
    ensure_pgmq(options["conn_string"])
    with kombu.Connection("pgmq://", transport_options=options) as opened:
        yield opened


def publish(broker: kombu.Connection) -> None:
    producer = kombu.Producer(broker.channel())
    producer.publish({}, routing_key="advance", declare=[QUEUE], retry=False)


def consuming(broker: kombu.Connection, heard: list[kombu.Message]) -> kombu.Consumer:
    """A consumer that takes one message at a time."""
    return kombu.Consumer(
        broker.channel(),
        [QUEUE],
        on_message=heard.append,
        prefetch_count=1,
    )


def cut_sessions() -> None:
    with administration(connection.settings_dict) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
            [connection.settings_dict["NAME"]],
        )
    connection.close()


def locks_on_tables() -> list[str]:
    """The tables that somebody has for himself."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relation::regclass::text FROM pg_locks "
            "WHERE mode IN ('AccessExclusiveLock', 'ShareRowExclusiveLock') "
            "AND locktype = 'relation' AND database = "
            "(SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        return [name for (name,) in cursor.fetchall()]


def waiting() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pgmq.q_advance")
        return int(cursor.fetchone()[0])


@pytest.mark.filterwarnings("ignore:list_queues")
def test_a_message_whose_acknowledgement_is_lost_does_not_keep_a_worker_from_the_next(
    broker: kombu.Connection,
) -> None:
    """It is deleted when it is read, so that its acknowledgement asks nothing of the database."""
    heard: list[kombu.Message] = []
    publish(broker)
    with consuming(broker, heard) as consumer:
        broker.drain_events(timeout=40)
        channel: Any = consumer.channel
        assert not channel.qos.can_consume()  # it may have one, and has it
        assert waiting() == 0
        cut_sessions()
        heard[0].ack()
        assert channel.qos.can_consume()


@pytest.mark.filterwarnings("ignore:list_queues")
def test_nothing_waits_for_a_disk_on_account_of_a_hint(broker: kombu.Connection) -> None:
    channel: Any = broker.channel()
    pool = channel.connection._get_pgmq_client().pool
    with pool.connection() as session:
        assert session.autocommit
        assert session.execute("SHOW synchronous_commit").fetchone() == ("off",)


@pytest.mark.filterwarnings("ignore:list_queues")
def test_a_worker_whose_hands_were_full_looks_again_as_soon_as_they_are_not(
    committed_db: str,
) -> None:
    """Nothing is sent meanwhile that would wake it, and it looks by itself once a minute."""
    options = broker_options(connection.settings_dict) | {"polling_interval": 60}
    ensure_pgmq(options["conn_string"])
    heard: list[kombu.Message] = []
    with kombu.Connection("pgmq://", transport_options=options) as broker:
        publish(broker)
        publish(broker)
        with consuming(broker, heard):
            broker.drain_events(timeout=40)
            done = threading.Timer(0.2, heard[0].ack)
            done.start()
            broker.drain_events(timeout=40)
            done.join()
    assert len(heard) == 2


@pytest.mark.filterwarnings("ignore:list_queues")
def test_whoever_begins_to_listen_waits_for_nobody_who_is_frozen(
    broker: kombu.Connection,
) -> None:
    """A frozen worker's transaction is open on the queue's table, and stays so."""
    publish(broker)
    with psycopg.connect(broker_options(connection.settings_dict)["conn_string"]) as frozen:
        frozen.execute("SELECT pgmq.read('advance', 60, 1)")
        with kombu.Connection(
            "pgmq://", transport_options=broker_options(connection.settings_dict)
        ) as another:
            heard: list[kombu.Message] = []
            with consuming(another, heard):
                publish(another)
                another.drain_events(timeout=40)
            assert len(heard) == 1
        assert locks_on_tables() == []
