"""Every transaction of a service lies between two failpoints: a torture can end a process there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SERVICES = [
    path
    for app in ("workflows", "reconciliation")
    for path in (ROOT / app / "services").glob("*.py")
]
# Their failpoints are in `send` and in `carry_out_item`, around them.
ELSEWHERE = {"transmit.begin", "transmit.write_answer", "bulk.do_once"}
# What an administrator sets up is neither the execution record nor the ledger; nor is what a
# rehearsal shows, which is what a provider is trusted for, nor a view that somebody keeps, nor the
# end of what people were told long ago.
SETTING_UP = {"setup", "sources", "rehearsals", "tenants", "channels", "rota", "saved_views"}
SETTING_UP |= {"forgetting"}


def transactions() -> Iterator[tuple[str, int]]:
    """Each function that opens a transaction, with how many failpoints it passes."""
    for path in SERVICES:
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef) and opens_transaction(function):
                calls = [name_of_call(node) for node in ast.walk(function)]
                yield f"{path.stem}.{function.name}", calls.count("failpoint")


def opens_transaction(function: ast.FunctionDef) -> bool:
    in_body = (
        name_of_call(item.context_expr) == "transaction.atomic"
        for node in ast.walk(function)
        if isinstance(node, ast.With)
        for item in node.items
    )
    return any(in_body) or any(
        "transaction.atomic" in ast.unparse(d) for d in function.decorator_list
    )


def name_of_call(node: ast.AST) -> str:
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


@pytest.mark.parametrize(("where", "failpoints"), sorted(transactions()))
def test_a_transaction_lies_between_two_failpoints(where: str, failpoints: int) -> None:
    if where in ELSEWHERE or where.partition(".")[0] in SETTING_UP:
        return
    # An atomic step's first one is passed inside: at its checkpoint.
    assert failpoints >= (1 if where == "executor.take_atomic_step" else 2), where


def test_there_are_transactions_to_look_at() -> None:
    assert len(list(transactions())) > len(ELSEWHERE) + len(SETTING_UP)
