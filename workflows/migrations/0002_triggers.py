"""What the database itself refuses in the execution record, whoever writes to it.

What the states of runs and attempts go with is checked where they change, not at each step.
PostgreSQL reads and plans every check of a table anew for each statement that writes to it, also
where the statement changes nothing that the check names: two fifths of the server's own work for a
step. A trigger costs a step nothing whose columns it leaves alone, and little where it fires.

The record of the authorisation boundary is added to, never deleted from, never rewritten; a
proposal ends once, is used once, and what it proposes does not change.
"""

from __future__ import annotations

from django.db import migrations

# Earlier changes were joined before the first release (0001_tables). A database that has only some
# of them is told here, where it is first noticed, and stays as it is.
REFUSE_UNFINISHED = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM information_schema.columns WHERE table_schema = current_schema()
                   AND table_name = 'workflows_worker' AND column_name = 'gone_at')
    THEN
        RAISE EXCEPTION 'This database was made by Romulus before its first release, and lacks '
            'changes that were made until then. Nothing was done to it. Make a new one: with make '
            'up, move the folder .romulus away; else name another database in DATABASE_URL.';
    END IF;
END $$;
"""
RUN_STATE = """
CREATE OR REPLACE FUNCTION workflows_run_state_consistent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state IN (
            'ready', 'running', 'waiting', 'held', 'completed', 'failed', 'cancelled'
        )
        AND (NEW.lease_owner IS NOT NULL) = (NEW.state = 'running')
        AND (NEW.finished_at IS NOT NULL) = (NEW.state IN ('completed', 'failed', 'cancelled'))
    THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'run_state_consistent: run % would be % with lease owner % and end %',
        NEW.id, NEW.state, NEW.lease_owner, NEW.finished_at
        USING ERRCODE = 'check_violation', CONSTRAINT = 'run_state_consistent';
END $$;
CREATE OR REPLACE TRIGGER run_state_consistent
    AFTER INSERT OR UPDATE OF state, lease_owner, finished_at ON workflows_run
    FOR EACH ROW EXECUTE FUNCTION workflows_run_state_consistent();
"""
ATTEMPT_STATE = """
CREATE OR REPLACE FUNCTION workflows_attempt_state_known() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state IN ('committed', 'failed', 'lost', 'superseded') THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'attempt_state_known: attempt % would be %', NEW.id, NEW.state
        USING ERRCODE = 'check_violation', CONSTRAINT = 'attempt_state_known';
END $$;
CREATE OR REPLACE TRIGGER attempt_state_known
    AFTER INSERT OR UPDATE OF state ON workflows_attempt
    FOR EACH ROW EXECUTE FUNCTION workflows_attempt_state_known();
"""
BOUNDARY = """
CREATE OR REPLACE FUNCTION workflows_boundary_never() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the record of the boundary is append-only: % on % is refused', TG_OP,
        TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;

CREATE OR REPLACE FUNCTION workflows_proposal_fixed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (to_jsonb(NEW) - '{state,ended_at,followed_at,used_by,used_at}'::text[])
       IS DISTINCT FROM
       (to_jsonb(OLD) - '{state,ended_at,followed_at,used_by,used_at}'::text[])
    THEN
        RAISE EXCEPTION 'what proposal % proposes does not change', OLD.id
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF OLD.state <> 'open' AND (NEW.state, NEW.ended_at) IS DISTINCT FROM (OLD.state, OLD.ended_at)
    THEN
        RAISE EXCEPTION 'proposal % ended as %, and does not change', OLD.id, OLD.state
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF OLD.used_by IS NOT NULL AND (NEW.used_by, NEW.used_at) IS DISTINCT FROM
       (OLD.used_by, OLD.used_at)
    THEN
        RAISE EXCEPTION 'proposal % was used, and counts once', OLD.id
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER fixed BEFORE UPDATE ON workflows_proposal
FOR EACH ROW EXECUTE FUNCTION workflows_proposal_fixed();
"""
KEPT = ("proposal",)
FROZEN = ("policyversion", "approval", "authorisationrecord")

FUNCTIONS = (
    "workflows_run_state_consistent",
    "workflows_attempt_state_known",
    "workflows_boundary_never",
    "workflows_proposal_fixed",
)


def forward_statements() -> str:
    statements = [REFUSE_UNFINISHED, RUN_STATE, ATTEMPT_STATE, BOUNDARY]
    for table in (*KEPT, *FROZEN):
        statements += [
            trigger("no_delete", "DELETE", table, each="ROW"),
            trigger("no_truncate", "TRUNCATE", table, each="STATEMENT"),
        ]
    statements += [trigger("no_update", "UPDATE", table, each="ROW") for table in FROZEN]
    return "\n".join(statements)


def trigger(name: str, on: str, table: str, *, each: str) -> str:
    return (
        f"CREATE OR REPLACE TRIGGER {name} BEFORE {on} ON workflows_{table} "
        f"FOR EACH {each} EXECUTE FUNCTION workflows_boundary_never();"
    )


def backward_statements() -> str:
    return "\n".join(f"DROP FUNCTION {name}() CASCADE;" for name in FUNCTIONS)


class Migration(migrations.Migration):
    dependencies = [("workflows", "0001_tables")]

    operations = [migrations.RunSQL(forward_statements(), backward_statements())]
