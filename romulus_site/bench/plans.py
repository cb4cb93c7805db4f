"""Which indexes PostgreSQL chooses for the hot statements: `EXPLAIN`, nothing is executed.

The plan is the one for any parameters, which a prepared statement ends with: no values are needed,
and none make the plan look better than it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import psycopg

from workflows.sql.statement import Statement

OURS = "workflows_"
PARTIAL = """
    SELECT c.relname, i.indpred IS NOT NULL FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
"""


def plans(
    connection: psycopg.Connection, statements: Mapping[str, Statement]
) -> list[dict[str, Any]]:
    """Return, for each statement, the indexes it uses and the tables it reads from end to end."""
    partial = {str(name): bool(is_partial) for name, is_partial in connection.execute(PARTIAL)}
    connection.execute("SET plan_cache_mode = force_generic_plan")
    return [plan_of(connection, name, each, partial) for name, each in statements.items()]


def plan_of(
    connection: psycopg.Connection, name: str, statement: Statement, partial: Mapping[str, bool]
) -> dict[str, Any]:
    try:
        nodes = list(nodes_of(explained(connection, statement)))
    except psycopg.Error as error:
        return {"statement": name, "indexes": [], "sequential_scans": [], "error": str(error)}
    indexes = sorted({node["Index Name"] for node in nodes if "Index Name" in node})
    scanned = {node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan"}
    return {
        "statement": name,
        "indexes": [{"name": index, "partial": partial[index]} for index in indexes],
        "sequential_scans": sorted(table for table in scanned if table.startswith(OURS)),
        "error": None,
    }


def explained(connection: psycopg.Connection, statement: Statement) -> dict[str, Any]:
    """Return the root of the generic plan of `statement`."""
    nulls = ", ".join(["NULL"] * len(statement.parameters))
    connection.execute(b"PREPARE hot AS " + statement.text)
    try:
        values = f"({nulls})" if nulls else ""
        shown = connection.execute(f"EXPLAIN (FORMAT JSON) EXECUTE hot{values}".encode())
        row = shown.fetchone()
    finally:
        connection.execute("DEALLOCATE hot")
    root: dict[str, Any] = row[0][0]["Plan"] if row else {}
    return root


def nodes_of(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for inner in node.get("Plans", ()):
        yield from nodes_of(inner)
