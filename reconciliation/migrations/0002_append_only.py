"""Promise P8 in the database: the ledger is added to, never deleted from, never rewritten.

Evidence, decisions, audit entries and contract versions do not change at all. An operation and a
transmission change state; what identifies them, and what a transmission was answered, does not.
"""

from __future__ import annotations

from django.db import migrations

FORWARD = """
CREATE FUNCTION reconciliation_never() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the ledger is append-only: % on % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END $$;

CREATE FUNCTION reconciliation_operation_identity() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.id, NEW.run_id, NEW.step, NEW.visit, NEW.effect, NEW.provider_id, NEW.action,
        NEW.target, NEW.summary, NEW.amount, NEW.currency, NEW.parameters_redacted,
        NEW.parameters_digest, NEW.idempotency_key, NEW.key_scope, NEW.request_sealed,
        NEW.supersedes_id, NEW.contract_version_id, NEW.created_at)
       IS DISTINCT FROM
       (OLD.id, OLD.run_id, OLD.step, OLD.visit, OLD.effect, OLD.provider_id, OLD.action,
        OLD.target, OLD.summary, OLD.amount, OLD.currency, OLD.parameters_redacted,
        OLD.parameters_digest, OLD.idempotency_key, OLD.key_scope, OLD.request_sealed,
        OLD.supersedes_id, OLD.contract_version_id, OLD.created_at)
    THEN
        RAISE EXCEPTION 'the identity of operation % does not change', OLD.id
            USING ERRCODE = 'restrict_violation';
    END IF;
    -- Once sent: when, and until when it may be repeated.
    IF OLD.first_sent_at IS NOT NULL
       AND (NEW.first_sent_at, NEW.replay_not_after)
           IS DISTINCT FROM (OLD.first_sent_at, OLD.replay_not_after)
    THEN
        RAISE EXCEPTION 'what protects operation % was fixed when it was first sent', OLD.id
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF OLD.state IN ('verified', 'rejected', 'abandoned') AND NEW IS DISTINCT FROM OLD THEN
        RAISE EXCEPTION 'operation % is settled', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION reconciliation_transmission_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.id, NEW.operation_id, NEW.number, NEW.attempt, NEW.worker, NEW.fence, NEW.purpose,
        NEW.started_at, NEW.in_flight_until)
       IS DISTINCT FROM
       (OLD.id, OLD.operation_id, OLD.number, OLD.attempt, OLD.worker, OLD.fence, OLD.purpose,
        OLD.started_at, OLD.in_flight_until)
       OR OLD.state <> 'sending'
    THEN
        RAISE EXCEPTION 'transmission % ended as %, and does not change', OLD.id, OLD.state
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
"""

TABLES = (
    "operation",
    "transmission",
    "evidence",
    "hold",
    "decision",
    "auditentry",
    "contractversion",
)
FROZEN = ("evidence", "decision", "auditentry", "contractversion")


def forward_statements() -> str:
    statements = [FORWARD]
    for table in TABLES:
        statements.append(
            f"CREATE TRIGGER no_delete BEFORE DELETE ON reconciliation_{table} "
            "FOR EACH ROW EXECUTE FUNCTION reconciliation_never();"
        )
        statements.append(
            f"CREATE TRIGGER no_truncate BEFORE TRUNCATE ON reconciliation_{table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION reconciliation_never();"
        )
    statements += [
        f"CREATE TRIGGER no_update BEFORE UPDATE ON reconciliation_{table} "
        "FOR EACH ROW EXECUTE FUNCTION reconciliation_never();"
        for table in FROZEN
    ]
    statements.append(
        "CREATE TRIGGER identity BEFORE UPDATE ON reconciliation_operation "
        "FOR EACH ROW EXECUTE FUNCTION reconciliation_operation_identity();"
    )
    statements.append(
        "CREATE TRIGGER once BEFORE UPDATE ON reconciliation_transmission "
        "FOR EACH ROW EXECUTE FUNCTION reconciliation_transmission_once();"
    )
    return "\n".join(statements)


def backward_statements() -> str:
    return "\n".join(
        f"DROP FUNCTION {name}() CASCADE;"
        for name in (
            "reconciliation_never",
            "reconciliation_operation_identity",
            "reconciliation_transmission_once",
        )
    )


class Migration(migrations.Migration):
    dependencies = [("reconciliation", "0001_initial")]

    operations = [migrations.RunSQL(forward_statements(), backward_statements())]
