"""What the tortured runs need: database, tables, people, providers, and a destination."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection, transaction

from reconciliation.models import ContractVersion, Provider, ReviewQueue
from reconciliation.rehearsal.client import Destination
from reconciliation.rehearsal.providers import ACTIONS
from reconciliation.services.setup import add_contract_version, make_owner
from romulus_site import leash, parts
from romulus_site.bench.database import dsn_of
from romulus_site.embedded import EmbeddedPostgres, broker_options, ensure_pgmq
from romulus_site.polling import wait_until
from romulus_site.torture import broker
from romulus_site.torture.clock import Clock
from romulus_site.torture.flows import MARKS
from romulus_site.torture.settings import QUEUES
from workflows.models import EventSource, Tenant
from workflows.services.sources import add_secret

TENANT, PERSON, SOURCE = "torture", "torturer", "torture"
SECRET = "torture-torture-torture-torture-torture"  # noqa: S105 (of a database that is dropped)
PERSONALITIES = ("keyed", "lookup", "blind")
# Look-ups a second: some have to wait for their turn, and none for long.
PACE = 50
TRUST = "The destination ships with Romulus, whose tests show what it claims."
# Short pauses, so that what is tried again is tried before the torture is over.
TIMEOUT_SECONDS = 3
BUDGET = {"first_pause_seconds": 0.2, "longest_pause_seconds": 2, "look_ups": 8}
VERSION = 1000
START_SECONDS = 30.0
# Below those that systems give to outgoing connections: one could take it during a restart.
FIRST_PORT, PORTS = 20_000, 10_000
# No foreign keys and nothing unique: what must not be there would be found, not refused.
TABLE = f"CREATE TABLE {MARKS} (run uuid, step text, visit int, attempt uuid)"


class NotSetUp(Exception):
    """The torture could not begin; the message says why."""


@dataclass
class Scene:
    """The set-up of one torture, as its player sees it."""

    folder: Path
    clock: Clock
    server: EmbeddedPostgres | None
    destination: DestinationProcess

    @classmethod
    def make(cls) -> Scene:
        """Start and fill everything; `end` ends it."""
        folder = Path(os.environ["ROMULUS_TORTURE_FOLDER"])
        (folder / "logs").mkdir(exist_ok=True)
        server = EmbeddedPostgres(settings.ROMULUS_DATA) if settings.ROMULUS_EMBEDDED else None
        scene = cls(folder, Clock(), server, DestinationProcess(folder))
        try:
            if server is not None:
                server.start()
            scene.fill()
        except BaseException:
            scene.end()
            raise
        return scene

    def fill(self) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        if broker.name() == broker.EMBEDDED:
            dsn = broker_options(settings.DATABASES["default"])["conn_string"]
            ensure_pgmq(dsn, QUEUES)
        self.clock.set()
        self.destination.start()
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(TABLE)
            set_up_providers(self.destination.url)
            set_up_source()

    @property
    def dsn(self) -> str:
        return dsn_of(settings.DATABASES["default"])

    def end(self) -> None:
        self.destination.kill()
        with suppress(Exception):
            broker.remove()
        connection.close()
        if self.server is not None:
            self.server.stop()


def set_up_providers(url: str) -> None:
    """One provider for each personality of the destination, and somebody who answers for all."""
    Tenant.objects.create(slug=TENANT, name="Torture")
    person = User.objects.create_superuser(PERSON)
    # It takes any hold: of runs too, whose step ended its workers.
    queue = ReviewQueue.objects.create(slug="torture", name="Torture")
    make_owner(person, queue)
    for personality in PERSONALITIES:
        Provider.objects.create(
            slug=f"torture-{personality}",
            name=f"Rehearsal, {personality}",
            adapter="rehearsal",
            account="acct_torture",
            base_url=url,
            settings={"actions": ACTIONS[personality]},
            contract_version=quick_contract(personality, person),
            replay_trust=TRUST,
            look_up_trust=TRUST,
            look_ups_per_second=PACE,
            default_queue=queue,
        )


def set_up_source() -> None:
    """Where the events of the tenant come from."""
    source = EventSource.objects.create(
        slug=SOURCE, name="Torture", tenant=Tenant.objects.get(slug=TENANT), scheme="internal"
    )
    add_secret(source, "first", by=f"command:{PERSON}", value=SECRET)


def quick_contract(personality: str, person: User) -> ContractVersion:
    """The shipped contract, with times that fit into a torture."""
    shipped = ContractVersion.objects.filter(slug=f"rehearsal-{personality}").latest("version")
    changes: dict[str, Any] = {
        "version": VERSION,
        "timeout_seconds": TIMEOUT_SECONDS,
        "budget": shipped.document["budget"] | BUDGET,
    }
    if shipped.document["look_up"]:
        changes["look_up"] = shipped.document["look_up"] | {"visibility_lag_seconds": 0}
    return add_contract_version(shipped.document | changes, by=person)


class DestinationProcess:
    """The rehearsal destination; killed and started again, it is at the same address."""

    def __init__(self, folder: Path) -> None:
        self._data = folder / "destination"
        self._log = folder / "logs" / "destination.log"
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.client: Destination | None = None

    @property
    def url(self) -> str:
        return f"http://{parts.LOOPBACK}:{self._port}"

    def start(self) -> None:
        self._port = self._port or parts.free_port(FIRST_PORT + os.getpid() % PORTS)
        part = parts.destination(self._port, self._data)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 (our own command line)
                leash.command(part.command, signal=signal.SIGKILL),
                cwd=settings.BASE_DIR,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        if not wait_until(lambda: part.is_ready(0), START_SECONDS):
            raise NotSetUp(f"The destination did not start; see {self._log}")
        # Its connections are those of one process.
        self.client = Destination(self.url)

    @property
    def at_hand(self) -> Destination:
        assert self.client is not None, "it is running"
        return self.client

    def kill(self) -> None:
        if self.client is not None:
            self.client.close()
            self.client = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


# --- the database -----------------------------------------------------------------------------


def cut_sessions() -> int:
    """End every session of the torture's database but the one that asks; return how many."""
    entry = settings.DATABASES["default"]
    statement = """
        SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = %s AND pid <> pg_backend_pid()
    """
    connection.close()
    with psycopg.connect(dsn_of(entry), autocommit=True) as admin:
        row = admin.execute(statement, [entry["NAME"]]).fetchone()
    return int(row[0]) if row else 0


def restart(server: EmbeddedPostgres, *, immediate: bool) -> float:
    """Stop the server and start it again; return for how long it was away.

    Fast, every session is ended and all is written down; immediate, it stops as in a crash and
    recovers from its log. Only from the main thread.
    """
    connection.close()
    began = time.monotonic()
    if immediate and server.pid is not None:
        os.kill(server.pid, signal.SIGQUIT)
        wait_until(lambda: not server.is_running, START_SECONDS)
    else:
        server.stop()
    server.start()
    return time.monotonic() - began


def python(module: str) -> list[str]:
    return [sys.executable, "-m", module]
