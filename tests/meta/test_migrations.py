"""The migration files and the models say the same."""

from __future__ import annotations

from importlib import import_module
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader

pytestmark = pytest.mark.django_db

OURS = ("workflows", "reconciliation")


def test_no_migration_is_missing() -> None:
    said = StringIO()
    try:
        call_command("makemigrations", check=True, dry_run=True, stdout=said, stderr=said)
    except SystemExit:
        pytest.fail(said.getvalue())


def test_no_migration_conflicts_with_another() -> None:
    assert MigrationLoader(connection).detect_conflicts() == {}


@pytest.mark.parametrize("app", OURS)
def test_every_migration_can_be_undone(app: str) -> None:
    loader = MigrationLoader(connection)
    for (label, name), migration in loader.disk_migrations.items():
        if label == app:
            for operation in migration.operations:
                assert operation.reversible, f"{app}.{name}: {operation.describe()}"


@pytest.mark.parametrize(
    ("app", "latest"),
    [
        ("workflows", "workflows_worker.gone_at"),
        ("reconciliation", "reconciliation_operation.turn_at"),
    ],
    ids=OURS,
)
def test_a_database_that_lacks_earlier_changes_is_refused(app: str, latest: str) -> None:
    """`0001_tables` joins them; a database that has only some of them never runs it."""
    refuse = import_module(f"{app}.migrations.0002_triggers").REFUSE_UNFINISHED
    table, column = latest.split(".")
    with connection.cursor() as cursor:
        cursor.execute(refuse)
        cursor.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        with pytest.raises(DatabaseError, match=r"lacks changes .*\s+.*Make a new one"):
            cursor.execute(refuse)


def test_the_triggers_of_the_ledger_are_there() -> None:
    """Promise P8: a table that is added without its triggers is found here."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tgrelid::regclass::text || '.' || tgname FROM pg_trigger WHERE NOT tgisinternal"
        )
        there = {row[0] for row in cursor.fetchall()}
    expected = {
        f"reconciliation_{table}.{trigger}"
        for table in ("operation", "transmission", "evidence", "hold", "decision", "auditentry")
        for trigger in ("no_delete", "no_truncate")
    }
    expected |= {
        f"reconciliation_{table}.no_update"
        for table in ("evidence", "decision", "auditentry", "contractversion")
    }
    expected |= {"reconciliation_operation.identity", "reconciliation_transmission.once"}
    assert expected <= there
