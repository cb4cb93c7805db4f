"""The whole system on this machine, in the hands of one supervisor: `manage.py up`."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management import call_command
from django.db import OperationalError, ProgrammingError, connection, connections

from romulus_site import parts, static_files
from romulus_site.embedded import EmbeddedPostgres, ensure_pgmq
from romulus_site.health import ask_broker
from romulus_site.processes import DidNotStart, Supervisor, Surroundings
from romulus_site.progress import Progress

# Python starts in a second, in several on a machine that is busy with everything else.
READY_SECONDS = 60.0
# The providers of the demonstration (`romulus_site.demo`, which imports models).
DEMO = ("desk", "machines", "payments")
BROKER_AWAY = (
    "The broker at {address} does not answer. Everything starts all the same:\n"
    "runs can be started and decided, and wait; work goes on by itself as soon as it answers.\n"
    "Start it, or set BROKER_URL."
)
BROKER_BACK = "The broker answers: work goes on"
ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Wanted:
    """What to run."""

    host: str
    port: int
    workers: int
    concurrency: int
    demo: bool


def broker_address() -> str:
    """Where the broker of one's own is, without its password."""
    url = urlsplit(os.environ.get("BROKER_URL", ""))
    return f"{url.scheme}://{url.netloc.rpartition('@')[2]}"


def here(wanted: Wanted) -> str:
    """Where people on this machine reach the console."""
    return f"http://{parts.bracketed(wanted.host)}:{wanted.port}"


class System:
    """The database, the console, the workers and the rehearsal destination.

    As a context it ends them all, however it is left: by SIGTERM and a closed terminal as by
    Ctrl-C, each of which raises KeyboardInterrupt inside.
    """

    def __init__(self, wanted: Wanted, data: Path, progress: Progress) -> None:
        self.wanted = wanted
        self.data = data
        self.destination_url = ""
        self._progress = progress
        self._postgres = EmbeddedPostgres(data) if settings.ROMULUS_EMBEDDED else None
        self._static = Path(settings.STATIC_ROOT or data / "static")
        # Also when the command was given elsewhere, with a relative path to the data.
        environment = {
            "ROMULUS_DATA": str(data),
            "ROMULUS_CONSOLE_URL": settings.ROMULUS_CONSOLE_URL or here(wanted),
            "STATIC_ROOT": str(self._static),
        }
        if wanted.demo:
            # Its destination is called on this machine; beside it, what the setting names already.
            environment["ROMULUS_ALLOWED_ADDRESSES"] = ",".join(
                [
                    *settings.ROMULUS_ALLOWED_ADDRESSES,
                    *(f"{slug}={parts.LOOPBACK}" for slug in DEMO),
                ]
            )
        surroundings = Surroundings(settings.BASE_DIR, environment)
        self._children = Supervisor(data / "logs", surroundings, progress.say)
        self._broker_is_away = False

    def __enter__(self) -> Self:
        for number in ENDING_SIGNALS:
            signal.signal(number, signal.default_int_handler)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Stopping has its own time limits; a second Ctrl-C must not leave half of it running.
        for number in ENDING_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        with self._progress.step("Ending everything"):
            connections.close_all()
            self._children.stop()
            if self._postgres is not None:
                self._postgres.stop()

    def start(self) -> list[str]:
        """Start everything; return what to tell the person who did, once all of it works."""
        from romulus_site import first_run

        self._start_database()
        with self._progress.step("Accounts"):
            messages = first_run.prepare(demo=self.wanted.demo).messages
        self._gather_files()
        self._start_children()
        self._look_at_broker()
        return messages

    def tend(self) -> None:
        """Start again what has died."""
        if self._postgres is not None and not self._postgres.is_running:
            self._progress.say("PostgreSQL has ended; starting it again")
            self._postgres.start()
        self._children.tend()
        if self._broker_is_away and ask_broker():
            self._broker_is_away = False
            self._progress.say(BROKER_BACK)

    def _look_at_broker(self) -> None:
        """Nothing waits for it here: its messages are hints, and workers look for it themselves."""
        self._broker_is_away = not ask_broker()
        if self._broker_is_away:
            self._progress.say(BROKER_AWAY.format(address=broker_address()))

    def _start_database(self) -> None:
        if self._postgres is not None:
            with self._progress.step("PostgreSQL"):
                self._postgres.start()
        with self._progress.step("Tables"):
            self._reach_database()
            self._make_tables()
            if settings.CELERY_BROKER_URL == "pgmq://":
                ensure_pgmq(settings.CELERY_BROKER_TRANSPORT_OPTIONS["conn_string"])

    def _make_tables(self) -> None:
        try:
            call_command("migrate", interactive=False, verbosity=0)
        except ProgrammingError as error:
            reason = str(error).partition("\n")[0]
            raise DidNotStart(f"The tables were not made: {reason}") from error

    def _reach_database(self) -> None:
        try:
            connection.ensure_connection()
        except OperationalError as error:
            raise DidNotStart(f"The database does not answer: {error}") from error

    def _gather_files(self) -> None:
        with self._progress.step("Files of the pages"):
            try:
                static_files.gather(self._static)
            except static_files.NotGathered as error:
                raise DidNotStart(str(error)) from error

    def _start_children(self) -> None:
        wanted = self.wanted
        started = []
        if wanted.demo:
            port = parts.destination_port(self.data, wanted.port)
            self.destination_url = f"http://{parts.LOOPBACK}:{port}"
            folder = self.data / "destination"
            started += self._children.start([parts.destination(port, folder)])
        workers = (parts.worker(n, wanted.concurrency) for n in range(1, wanted.workers + 1))
        started += self._children.start([parts.console(wanted.host, wanted.port), *workers])
        for child in started:
            with self._progress.step(child.part.name.capitalize()):
                self._children.wait_until_ready(child, READY_SECONDS)
