"""Workers whose parent had a connection to the database before it made them by forking.

Run as a program: so many workers, and a parent that goes on using its own connection and says, at
its end, whether every reply was the answer to its own question.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import django

ANSWERED = "every reply was the parent's own"
ending = False


def end(*_: Any) -> None:
    global ending
    ending = True


def main(workers: int) -> None:
    django.setup()
    from django.db import connection

    ask(connection, 0)
    parent = os.getpid()
    for number in range(workers):
        if os.fork() == 0:
            work(number, parent)
    signal.signal(signal.SIGTERM, end)
    question = 1
    while not ending:
        ask(connection, question)
        question += 1
    sys.stdout.write(f"{ANSWERED}\n")
    sys.stdout.flush()


def ask(connection: Any, question: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::int, pg_sleep(0.005)", [question])
        (answer, _) = cursor.fetchone()
    assert answer == question, f"asked {question}, and the answer was to {answer}"


def work(number: int, parent: int) -> None:
    from romulus_site import leash
    from romulus_site.celery import app

    leash.die_with(parent, signal.SIGKILL)

    options = "--without-gossip --without-mingle --without-heartbeat --loglevel=WARNING"
    app.worker_main(
        [
            *("worker", "--pool=threads", "--concurrency=2", "--queues=advance,reconcile"),
            *(f"--hostname=forked-{number}@%h", *options.split()),
        ]
    )
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
