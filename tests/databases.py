"""Databases that are cloned from the migrated test database, for tests that really commit."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import psycopg
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import sql


def url_of(settings: dict[str, object]) -> str:
    host = quote(str(settings["HOST"]), safe="")
    password = f":{quote(str(settings['PASSWORD']))}" if settings["PASSWORD"] else ""
    port = f":{settings['PORT']}" if settings["PORT"] else ""
    return f"postgres://{settings['USER']}{password}@{host}{port}/{settings['NAME']}"


def administration(settings: dict[str, object]) -> psycopg.Connection:
    return psycopg.connect(
        host=str(settings["HOST"]) or None,
        port=str(settings["PORT"]) or None,
        user=str(settings["USER"]),
        password=str(settings["PASSWORD"]) or None,
        dbname="postgres",
        autocommit=True,
    )


@contextmanager
def cloned(connection: BaseDatabaseWrapper) -> Iterator[str]:
    """Clone the database of `connection`, point it there, and drop the clone after."""
    template = connection.settings_dict["NAME"]
    name = f"clone_{uuid.uuid4().hex[:12]}"
    connection.close()
    with administration(connection.settings_dict) as admin:
        admin.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
    connection.settings_dict["NAME"] = name
    try:
        yield url_of(connection.settings_dict)
    finally:
        connection.close()
        connection.settings_dict["NAME"] = template
        with administration(connection.settings_dict) as admin:
            admin.execute(
                sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
            )
