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


def create(settings: dict[str, object], name: str, template: str) -> None:
    with administration(settings) as admin:
        # By files: half the work of writing each of their blocks to the log as well.
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
        admin.execute(statement.format(sql.Identifier(name), sql.Identifier(template)))


def drop(settings: dict[str, object], name: str) -> None:
    with administration(settings) as admin:
        statement = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        admin.execute(statement.format(sql.Identifier(name)))


def template_of(database: object) -> str:
    return f"{database}_template"


@contextmanager
def template(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Keep a copy of the migrated database that no test connects to, for others to be made from."""
    name = template_of(connection.settings_dict["NAME"])
    connection.close()
    drop(connection.settings_dict, name)
    create(connection.settings_dict, name, connection.settings_dict["NAME"])
    try:
        yield
    finally:
        drop(connection.settings_dict, name)


@contextmanager
def cloned(connection: BaseDatabaseWrapper) -> Iterator[str]:
    """Clone the migrated database, point `connection` there, and drop the clone after."""
    migrated = connection.settings_dict["NAME"]
    name = f"clone_{uuid.uuid4().hex[:12]}"
    connection.close()
    create(connection.settings_dict, name, template_of(migrated))
    connection.settings_dict["NAME"] = name
    try:
        yield url_of(connection.settings_dict)
    finally:
        connection.close()
        connection.settings_dict["NAME"] = migrated
        drop(connection.settings_dict, name)
