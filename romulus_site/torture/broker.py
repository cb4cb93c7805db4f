"""The broker's queues of this torture: emptied as a blow, and removed after."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import kombu
from celery import current_app
from django.conf import settings
from django.db import connection

from romulus_site.torture.settings import PREFIX, QUEUES

EMBEDDED = "pgmq"
REDIS = ("redis", "rediss")


def name() -> str:
    """The kind of broker, without its address."""
    return str(settings.CELERY_BROKER_URL).partition(":")[0]


def purge() -> int:
    """Drop every message that waits; return how many there were."""
    if name() == EMBEDDED:
        return sum(deleted(queue) for queue in QUEUES)
    with current_app.connection_for_write() as broker:
        channel = broker.default_channel
        return sum(purged(channel, queue) for queue in QUEUES)


def purged(channel: Any, queue: str) -> int:
    return int(kombu.Queue(queue, channel=channel).purge() or 0)


def deleted(queue: str) -> int:
    """What a worker is taking at this moment stays: its own purge would lock the whole table, and
    wait for a worker that is frozen while everybody waits for it."""
    table = f"pgmq.q_{queue}"
    with connection.cursor() as cursor:
        cursor.execute(
            f"DELETE FROM {table} WHERE msg_id IN "  # noqa: S608 (our own name)
            f"(SELECT msg_id FROM {table} FOR UPDATE SKIP LOCKED)"
        )
        return int(cursor.rowcount)


def remove() -> None:
    """Remove what this torture has made at a broker that others use too."""
    if name() == EMBEDDED:
        return  # it goes with the database
    with current_app.connection_for_write() as broker:
        channel = broker.default_channel
        for queue in QUEUES:
            with suppress(*broker.channel_errors):
                kombu.Queue(queue, channel=channel).delete()
            with suppress(*broker.channel_errors):
                kombu.Exchange(queue, channel=channel).delete()
    if name() in REDIS:
        remove_keys()


def remove_keys() -> None:
    """Redis keeps unacknowledged messages beside the queues; their names begin as these do."""
    import redis

    with redis.Redis.from_url(settings.CELERY_BROKER_URL) as client:
        for key in list(client.scan_iter(match=f"{PREFIX}*")):
            client.delete(key)
