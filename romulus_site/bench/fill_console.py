"""Fills the ledger: runs, operations with what was sent and found, holds, decisions, audit.

By the database itself (see `fill`). The newest runs are held, each by its last operation; one of
twenty others was held once, and decided.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg

from reconciliation.core.states import (
    DecisionKind,
    EvidenceKind,
    HoldState,
    OperationState,
    Purpose,
    TransmissionState,
)
from reconciliation.models import AuditEntry, Decision, Evidence, Hold, Operation, Transmission
from romulus_site.bench.fill import (
    KEY,
    MOMENT,
    RUNS,
    YESTERDAY_MS,
    checkpoint,
    database_day,
    insertion,
    without_checks,
)
from workflows.core.states import RunState
from workflows.models import Run

BATCH = 10_000
APART_MS = 10_000
OPERATIONS_PER_RUN = 10
SENDS, FINDINGS = 1, 2
# One of so many finished runs was held once.
DECIDED_ONE_IN = 20

IS_HELD = "s.n > %(number)s - %(holds)s"
HELD_HERE = f"({IS_HELD} AND o.k = {OPERATIONS_PER_RUN})"
ONCE_HELD = f"NOT {IS_HELD} AND mod(s.n, {DECIDED_ONE_IN}) = 0"
RUN = KEY.format(ms="s.ms", seed="'run-' || s.n")
OPERATION = KEY.format(ms="s.ms + {k}", seed="'operation-' || s.n || '-' || {k}")
HOLD = KEY.format(ms="s.ms + 40", seed="'hold-' || s.n")
SENT = KEY.format(ms="s.ms + o.k + 1", seed="'send-' || s.n || '-' || o.k || '-' || t.i")
FOUND = KEY.format(ms="s.ms + o.k + 2", seed="'found-' || s.n || '-' || o.k || '-' || t.i")
PICKED = "(%({kind})s::uuid[])[1 + mod(s.n, cardinality(%({kind})s::uuid[]))]"
REASON = "'absence_not_proof'"
MESSAGE = "'It was sent and no answer came; a look-up found nothing, which proves nothing.'"

RUN_COLUMNS = {
    "id": RUN,
    "workflow": "'refund'",
    "version": "1",
    "tenant": PICKED.format(kind="tenants"),
    "state": f"CASE WHEN {IS_HELD} THEN '{RunState.HELD}' ELSE '{RunState.COMPLETED}' END",
    "step": "'create_refund'",
    "visit": "1",
    "input": """jsonb_build_object('order', 'ORD-' || s.n)""",
    "start_key": "'order ORD-' || s.n",
    "fence": "3",
    "ready_at": MOMENT.format(ms=0),
    "created_at": MOMENT.format(ms=0),
    "finished_at": f"CASE WHEN NOT {IS_HELD} THEN {MOMENT.format(ms=60_000)} END",
}
OPERATION_COLUMNS = {
    "id": OPERATION.format(k="o.k"),
    "run": RUN,
    "step": "'create_refund'",
    "visit": "1",
    "effect": "'effect-' || o.k",
    "provider": PICKED.format(kind="providers"),
    "contract_version": "%(contract)s::uuid",
    "action": "'payments.refund'",
    "target": "'ORD-' || s.n",
    "summary": "'Refund EUR ' || mod(s.n, 900) || '.00 on ORD-' || s.n",
    "amount": "mod(s.n, 900)",
    "currency": "'EUR'",
    "parameters_redacted": "jsonb_build_object('order', 'ORD-' || s.n, 'amount', mod(s.n, 900))",
    "parameters_digest": "'bench:' || md5(s.n || '-' || o.k)",
    "idempotency_key": "'bench-' || s.n || '-' || o.k",
    "key_scope": """'{"account": "acct_bench"}'::jsonb""",
    "first_sent_at": MOMENT.format(ms="10 + o.k"),
    "state": f"CASE WHEN {HELD_HERE} THEN '{OperationState.HELD}'"
    f" ELSE '{OperationState.VERIFIED}' END",
    "resource": f"CASE WHEN {HELD_HERE} THEN '' ELSE 're_' || s.n || '_' || o.k END",
    "created_at": MOMENT.format(ms=0),
    "settled_at": f"CASE WHEN NOT {HELD_HERE} THEN {MOMENT.format(ms=50_000)} END",
}
TRANSMISSION_COLUMNS = {
    "id": SENT,
    "operation": OPERATION.format(k="o.k"),
    "number": "t.i",
    "attempt": KEY.format(ms="s.ms", seed="'attempt-' || s.n || '-' || t.i"),
    "worker": "md5('worker')::uuid",
    "fence": "3",
    "purpose": f"'{Purpose.FIRST}'",
    "started_at": MOMENT.format(ms="10 + o.k"),
    "in_flight_until": MOMENT.format(ms=30_000),
    "ended_at": MOMENT.format(ms=20_000),
    "phase": f"CASE WHEN {HELD_HERE} THEN 'wait' ELSE 'answer' END",
    "state": f"CASE WHEN {HELD_HERE} THEN '{TransmissionState.UNKNOWN}'"
    f" ELSE '{TransmissionState.ACKNOWLEDGED}' END",
    "provider_request_id": "'req_' || s.n || '_' || o.k",
}
EVIDENCE_COLUMNS = {
    "id": FOUND,
    "operation": OPERATION.format(k="o.k"),
    "kind": f"CASE WHEN {HELD_HERE} THEN '{EvidenceKind.ABSENCE}'"
    f" ELSE '{EvidenceKind.RECEIPT}' END",
    "completes": f"NOT {HELD_HERE}",
    "postcondition": f"CASE WHEN NOT {HELD_HERE} THEN true END",
    "resource": f"CASE WHEN {HELD_HERE} THEN '' ELSE 're_' || s.n || '_' || o.k END",
    "observed_at": MOMENT.format(ms="20000 + t.i"),
    "recorded_at": MOMENT.format(ms="20000 + t.i"),
    "source": "'look-up'",
}
DUE = "now() + (s.n - %(number)s) * interval '1 minute' + interval '1 day'"
HOLD_COLUMNS = {
    "id": HOLD,
    "run": RUN,
    "tenant": PICKED.format(kind="tenants"),
    "operation": OPERATION.format(k=OPERATIONS_PER_RUN),
    "queue": PICKED.format(kind="queues"),
    "provider": PICKED.format(kind="providers"),
    "amount": "mod(s.n, 900)",
    "window_ends_at": DUE,
    "reason": REASON,
    "message": MESSAGE,
    "opened_at": MOMENT.format(ms=30_000),
    "due_at": DUE,
    "state": f"CASE WHEN {IS_HELD} THEN '{HoldState.OPEN}' ELSE '{HoldState.DECIDED}' END",
    "closed_at": f"CASE WHEN NOT {IS_HELD} THEN {MOMENT.format(ms=45_000)} END",
}
DECISION_COLUMNS = {
    "id": KEY.format(ms="s.ms + 50", seed="'decision-' || s.n"),
    "hold": HOLD,
    "operation": OPERATION.format(k=OPERATIONS_PER_RUN),
    "kind": f"'{DecisionKind.APPLIED}'",
    "by": "%(reader)s",
    "by_name": "'Reader'",
    "note": "'The provider lists the refund under its own number.'",
    "resource": "'re_' || s.n",
    "hold_version": "1",
    "token": "md5('token-' || s.n)::uuid",
    "shown": "'{}'::jsonb",
    "at": MOMENT.format(ms=45_000),
}
AUDIT_COLUMNS = {
    "seq": f"%(audited)s + (s.n - 1) * {OPERATIONS_PER_RUN} + o.k",
    "at": MOMENT.format(ms="o.k"),
    "actor": "'user:1 reader'",
    "verb": "'decided'",
    "object": f"'operation:' || {OPERATION.format(k='o.k')}",
    "previous_hash": "md5('before') || md5('before')",
    "hash": "md5(s.n || '-' || o.k) || md5('hash')",
}
OPERATIONS = RUNS + f" CROSS JOIN generate_series(1, {OPERATIONS_PER_RUN}) AS o (k)"
TIMES = " CROSS JOIN generate_series(1, {times}) AS t (i)"
MASSES = (
    (Run, RUN_COLUMNS, RUNS),
    (Operation, OPERATION_COLUMNS, OPERATIONS),
    (Transmission, TRANSMISSION_COLUMNS, OPERATIONS + TIMES.format(times=SENDS)),
    (Evidence, EVIDENCE_COLUMNS, OPERATIONS + TIMES.format(times=FINDINGS)),
    (Hold, HOLD_COLUMNS, RUNS + f" WHERE {IS_HELD} OR {ONCE_HELD}"),
    (Decision, DECISION_COLUMNS, RUNS + f" WHERE {ONCE_HELD}"),
    (AuditEntry, AUDIT_COLUMNS, OPERATIONS),
)


def fill_console(
    connection: psycopg.Connection,
    operations: int,
    holds: int,
    known: dict[str, Any],
    say: Callable[[str], None],
) -> int:
    """Add about so many operations, of which `holds` are held; return the rows of the ledger.

    `known` has the IDs of `tenants`, `providers` and `queues`, of a `contract` and the `reader`.
    """
    without_checks(connection)
    number = max(operations // OPERATIONS_PER_RUN, holds)
    newest = YESTERDAY_MS * (database_day(connection) - 1)
    row = connection.execute("SELECT coalesce(max(seq), 0) FROM reconciliation_auditentry")
    (audited,) = row.fetchone() or (0,)
    rows = 0
    for first in range(1, number + 1, BATCH):
        say(f"run {first} of {number}, with {OPERATIONS_PER_RUN} operations each")
        batch = known | {
            "newest": newest,
            "number": number,
            "apart": APART_MS,
            "holds": holds,
            "first": first,
            "last": min(first + BATCH - 1, number),
            "audited": audited,
        }
        for model, columns, source in MASSES:
            done = connection.execute(insertion(model, columns, source), batch)
            rows += 0 if model is Run else done.rowcount
    say("vacuum, analyze, checkpoint")
    connection.execute("VACUUM (ANALYZE)")
    checkpoint(connection)
    return rows
