"""Throw-away databases, on a server of the same kind as the product runs on.

Embedded: a server of its own in a temporary folder, as durable as the product's. With
`DATABASE_URL`: databases of its own on that server, which it drops after. Nothing is ever read
from or written to the database of the product.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from psycopg import sql
from psycopg.conninfo import make_conninfo

from romulus_site.bench.talk import last_lines
from romulus_site.embedded import EmbeddedPostgres, broker_options, database_settings, ensure_pgmq

SETTINGS = "romulus_site.bench.settings"
FACTS = """
    SELECT current_setting('server_version'), current_setting('fsync'),
        current_setting('synchronous_commit'), current_setting('full_page_writes')
"""

MAY_NOT_CREATE = (
    "The bench makes a database of its own, which the user of DATABASE_URL may not: "
    "give it the right (ALTER ROLE … CREATEDB), or leave DATABASE_URL out."
)


class NoDatabase(Exception):
    """The bench has no database to measure on; the message says why."""


@dataclass(frozen=True)
class Server:
    """A PostgreSQL server on which the bench may make databases."""

    entry: dict[str, Any]  # of Django's `DATABASES`
    environment: dict[str, str]  # that makes a process of the product use this server
    folder: Path  # for logs and sockets; gone after

    def connect(self, database: str = "postgres") -> psycopg.Connection:
        """Return a connection of which each statement commits by itself.

        Raises:
            NoDatabase: the server does not answer, or refuses.
        """
        try:
            return psycopg.connect(dsn_of(self.entry | {"NAME": database}), autocommit=True)
        except psycopg.OperationalError as error:
            raise NoDatabase(f"PostgreSQL does not answer: {error}") from error

    def environment_of(self, database: str, **variables: str) -> dict[str, str]:
        """Return the environment of a process that works on `database`."""
        return {
            **self.environment,
            "DJANGO_SETTINGS_MODULE": SETTINGS,
            "ROMULUS_BENCH_DATABASE": database,
            **{f"ROMULUS_BENCH_{name.upper()}": value for name, value in variables.items()},
        }

    @contextmanager
    def database(self, template: str = "template1") -> Iterator[str]:
        """Make a database, give its name, and drop it after."""
        name = f"romulus_bench_{uuid.uuid4().hex[:8]}"
        make = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        with self.connect() as admin:
            try:
                admin.execute(make.format(sql.Identifier(name), sql.Identifier(template)))
            except psycopg.errors.InsufficientPrivilege as error:
                raise NoDatabase(MAY_NOT_CREATE) from error
        try:
            yield name
        finally:
            drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
            with self.connect() as admin:
                admin.execute(drop.format(sql.Identifier(name)))

    @contextmanager
    def migrated(self) -> Iterator[str]:
        """Make a database with the product's tables and, for the embedded broker, its queues."""
        with self.database() as name:
            migrate(self.environment_of(name), self.folder / "migrate.log")
            ensure_pgmq(broker_options(self.entry | {"NAME": name})["conn_string"])
            yield name

    def facts(self) -> dict[str, Any]:
        """Return what the figures depend on."""
        with self.connect() as admin:
            version, fsync, synchronous, images = admin.execute(FACTS).fetchone() or [None] * 4
        return {
            "postgresql": version,
            "embedded": settings.ROMULUS_EMBEDDED,
            "fsync": fsync,
            "synchronous_commit": synchronous,
            "full_page_writes": images,
            "python": sys.version.split()[0],
            "cpus": os.cpu_count(),
        }


@contextmanager
def bench_server() -> Iterator[Server]:
    """Give the server to measure on.

    Raises:
        NoDatabase: there is none, or none where databases may be made.
    """
    with tempfile.TemporaryDirectory(prefix="romulus-bench-") as name:
        folder = Path(name)
        if not settings.ROMULUS_EMBEDDED:
            yield Server(settings.DATABASES["default"], dict(os.environ), folder)
            return
        data = folder / "data"
        inherited = {key: value for key, value in os.environ.items() if key != "DATABASE_URL"}
        with EmbeddedPostgres(data):
            environment = inherited | {"ROMULUS_DATA": str(data)}
            yield Server(database_settings(data), environment, folder)


def migrate(environment: dict[str, str], log: Path) -> None:
    command = [sys.executable, "manage.py", "migrate", "--verbosity=0", "--no-input"]
    with log.open("wb") as output:
        done = subprocess.run(  # noqa: S603 (our own command line)
            command,
            cwd=settings.BASE_DIR,
            env=environment,
            stdout=output,
            stderr=output,
            check=False,
        )
    if done.returncode != 0:
        raise NoDatabase(f"The bench's database could not be migrated:\n{last_lines(log)}")


def dsn_of(entry: dict[str, Any]) -> str:
    """Return the connection string of a `DATABASES` entry."""
    parameters = {
        "host": entry.get("HOST"),
        "port": entry.get("PORT"),
        "user": entry.get("USER"),
        "password": entry.get("PASSWORD"),
        "dbname": entry["NAME"],
        # What is no text is Django's own, and `assume_role` is, too.
        **{
            key: value
            for key, value in entry.get("OPTIONS", {}).items()
            if isinstance(value, str) and key != "assume_role"
        },
    }
    return make_conninfo(**{key: value for key, value in parameters.items() if value})
