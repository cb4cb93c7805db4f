"""What the database itself keeps true of the ledger, whoever writes to it.

Promise P8: the ledger is added to, never deleted from, never rewritten. Evidence, decisions, audit
entries, contract versions, rehearsals and what is said about a case do not change at all. An
operation and a transmission change state; what identifies them, and what a transmission was
answered, does not.
"""

from __future__ import annotations

from django.db import migrations

# Earlier changes were joined before the first release (0001_tables). A database that has only some
# of them is told here, where it is first noticed, and stays as it is.
REFUSE_UNFINISHED = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM information_schema.columns WHERE table_schema = current_schema()
                   AND table_name = 'reconciliation_operation' AND column_name = 'turn_at')
    THEN
        RAISE EXCEPTION 'This database was made by Romulus before its first release, and lacks '
            'changes that were made until then. Nothing was done to it. Make a new one: with make '
            'up, move the folder .romulus away; else name another database in DATABASE_URL.';
    END IF;
END $$;
"""
LEDGER_RULES = """
CREATE OR REPLACE FUNCTION reconciliation_never() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the ledger is append-only: % on % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END $$;

CREATE OR REPLACE FUNCTION reconciliation_operation_identity()
RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.id, NEW.run_id, NEW.step, NEW.visit, NEW.effect, NEW.provider_id, NEW.action,
        NEW.target, NEW.summary, NEW.amount, NEW.currency, NEW.parameters_redacted,
        NEW.parameters_digest, NEW.idempotency_key, NEW.key_scope, NEW.request_sealed,
        NEW.supersedes_id, NEW.compensates_id, NEW.contract_version_id, NEW.created_at)
       IS DISTINCT FROM
       (OLD.id, OLD.run_id, OLD.step, OLD.visit, OLD.effect, OLD.provider_id, OLD.action,
        OLD.target, OLD.summary, OLD.amount, OLD.currency, OLD.parameters_redacted,
        OLD.parameters_digest, OLD.idempotency_key, OLD.key_scope, OLD.request_sealed,
        OLD.supersedes_id, OLD.compensates_id, OLD.contract_version_id, OLD.created_at)
    THEN
        RAISE EXCEPTION 'the identity of operation % does not change', OLD.id
            USING ERRCODE = 'restrict_violation';
    END IF;
    -- Once anything of it may have left: when, and until when it may be repeated.
    IF OLD.first_sent_at IS NOT NULL
       AND (NEW.first_sent_at, NEW.replay_not_after)
           IS DISTINCT FROM (OLD.first_sent_at, OLD.replay_not_after)
       AND EXISTS (SELECT 1 FROM reconciliation_transmission
                   WHERE operation_id = OLD.id AND state <> 'not_sent')
    THEN
        RAISE EXCEPTION 'what protects operation % was fixed when it was first sent', OLD.id
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF OLD.state IN ('verified', 'rejected', 'abandoned') AND NEW IS DISTINCT FROM OLD THEN
        RAISE EXCEPTION 'operation % is settled', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION reconciliation_proposal_fixed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.proposal_id IS DISTINCT FROM OLD.proposal_id THEN
        RAISE EXCEPTION 'the identity of operation % does not change', OLD.id
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION reconciliation_transmission_once() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE OR REPLACE TRIGGER identity BEFORE UPDATE ON reconciliation_operation
FOR EACH ROW EXECUTE FUNCTION reconciliation_operation_identity();
CREATE OR REPLACE TRIGGER proposal_fixed BEFORE UPDATE ON reconciliation_operation
FOR EACH ROW EXECUTE FUNCTION reconciliation_proposal_fixed();
CREATE OR REPLACE TRIGGER once BEFORE UPDATE ON reconciliation_transmission
FOR EACH ROW EXECUTE FUNCTION reconciliation_transmission_once();
"""
KEPT = ("operation", "transmission", "hold")
FROZEN = (
    "evidence",
    "decision",
    "decisionproposal",
    "proposalend",
    "auditentry",
    "contractversion",
    "rehearsal",
    "casenote",
)

# Each hold says whose it is: who may see it is found without its run or its event. By the
# database, so that none is without, and none is another's.
TENANT_OF_HOLDS = """
CREATE OR REPLACE FUNCTION reconciliation_hold_tenant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.tenant_id := coalesce(
        (SELECT tenant_id FROM workflows_run WHERE id = NEW.run_id),
        (SELECT tenant_id FROM workflows_event WHERE id = NEW.event_id)
    );
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER tenant
BEFORE INSERT OR UPDATE OF run_id, event_id, tenant_id ON reconciliation_hold
FOR EACH ROW EXECUTE FUNCTION reconciliation_hold_tenant();
CREATE OR REPLACE FUNCTION reconciliation_holds_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE reconciliation_hold SET tenant_id = NEW.tenant_id WHERE run_id = NEW.id;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER holds_follow AFTER UPDATE OF tenant_id ON workflows_run
FOR EACH ROW EXECUTE FUNCTION reconciliation_holds_follow();
"""

FUNCTIONS = (
    "reconciliation_never",
    "reconciliation_operation_identity",
    "reconciliation_proposal_fixed",
    "reconciliation_transmission_once",
    "reconciliation_hold_tenant",
    "reconciliation_holds_follow",
)


def forward_statements() -> str:
    statements = [REFUSE_UNFINISHED, LEDGER_RULES, TENANT_OF_HOLDS]
    for table in (*KEPT, *FROZEN):
        statements += [
            trigger("no_delete", "DELETE", table, each="ROW"),
            trigger("no_truncate", "TRUNCATE", table, each="STATEMENT"),
        ]
    statements += [trigger("no_update", "UPDATE", table, each="ROW") for table in FROZEN]
    return "\n".join(statements)


def trigger(name: str, on: str, table: str, *, each: str) -> str:
    return (
        f"CREATE OR REPLACE TRIGGER {name} BEFORE {on} ON reconciliation_{table} "
        f"FOR EACH {each} EXECUTE FUNCTION reconciliation_never();"
    )


def backward_statements() -> str:
    return "\n".join(f"DROP FUNCTION {name}() CASCADE;" for name in FUNCTIONS)


class Migration(migrations.Migration):
    dependencies = [("reconciliation", "0001_tables")]

    operations = [migrations.RunSQL(forward_statements(), backward_statements())]
