"""A set-up for one torture, made for it and thrown away: a folder, a database, names of queues.

Without DATABASE_URL the player runs an embedded PostgreSQL of its own in the folder, as durable as
the product's. With it, a database is made on that server and dropped after; nothing is read from
or written to any other.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from django.conf import settings
from psycopg import sql

from romulus_site.bench.database import dsn_of

SETTINGS = "romulus_site.torture.settings"


@dataclass
class Stage:
    """Where the player runs.

    Attributes:
        environment: of the player, and of every process that it starts.
        keep: whether the folder is left, and the database on a server that is not ours.
    """

    folder: Path
    environment: dict[str, str]
    keep: bool
    database: str = ""
    notes: list[str] = field(default_factory=list)


@contextmanager
def stage(*, lease: float, keep: bool) -> Iterator[Stage]:
    """Make a stage, and take it away unless `keep` is set by then."""
    folder = Path(tempfile.mkdtemp(prefix="romulus-torture-"))
    mark = f"torture_{uuid.uuid4().hex[:8]}"
    made = Stage(folder, environment_of(folder, mark, lease), keep)
    try:
        if settings.ROMULUS_EMBEDDED:
            yield made
        else:
            with database_on_server(mark, made):
                yield made
    finally:
        if made.keep:
            made.notes.append(f"Everything of it is left in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def environment_of(folder: Path, mark: str, lease: float) -> dict[str, str]:
    # What the caller's shell has set for the product's own outputs, keys and failpoints stays out.
    own = {name: text for name, text in os.environ.items() if not name.startswith("ROMULUS_")}
    return own | {
        "DJANGO_SETTINGS_MODULE": SETTINGS,
        "ROMULUS_DATA": str(folder / "data"),
        "ROMULUS_TORTURE_FOLDER": str(folder),
        "ROMULUS_TORTURE_PREFIX": f"{mark}_",
        "ROMULUS_LEASE_SECONDS": str(lease),
        "ROMULUS_SWEEP_SECONDS": "0.2",
        # Some outputs go to the storage, without being large.
        "ROMULUS_INLINE_OUTPUT_BYTES": "4096",
        "PYTHONPATH": str(settings.BASE_DIR),
    }


@contextmanager
def database_on_server(name: str, made: Stage) -> Iterator[None]:
    """Make a database of its own on the server of `DATABASE_URL`."""
    url = urlsplit(settings.DATABASE_URL)
    administer("CREATE DATABASE {}", name)
    made.database = name
    made.environment["DATABASE_URL"] = url._replace(path=f"/{name}").geturl()
    try:
        yield
    finally:
        if made.keep:
            made.notes.append(f"The database {name} is left on the server.")
        else:
            administer("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)


def administer(statement: str, name: str) -> None:
    entry: Mapping[str, object] = settings.DATABASES["default"]
    with psycopg.connect(dsn_of({**entry, "NAME": "postgres"}), autocommit=True) as admin:
        admin.execute(sql.SQL(statement).format(sql.Identifier(name)))
