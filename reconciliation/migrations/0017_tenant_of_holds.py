"""Each hold says whose it is: who may see it is found without its run or its event."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

import reconciliation.core.states

# By the database, so that none is without, and none is another's, whoever writes it.
FILL_IN = """
CREATE FUNCTION reconciliation_hold_tenant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.tenant_id := coalesce(
        (SELECT tenant_id FROM workflows_run WHERE id = NEW.run_id),
        (SELECT tenant_id FROM workflows_event WHERE id = NEW.event_id)
    );
    RETURN NEW;
END $$;
CREATE TRIGGER tenant BEFORE INSERT OR UPDATE OF run_id, event_id, tenant_id ON reconciliation_hold
FOR EACH ROW EXECUTE FUNCTION reconciliation_hold_tenant();
CREATE FUNCTION reconciliation_holds_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE reconciliation_hold SET tenant_id = NEW.tenant_id WHERE run_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER holds_follow AFTER UPDATE OF tenant_id ON workflows_run
FOR EACH ROW EXECUTE FUNCTION reconciliation_holds_follow();
UPDATE reconciliation_hold SET tenant_id = NULL;
SET CONSTRAINTS ALL IMMEDIATE;
"""
FILL_IN_BACK = """
DROP TRIGGER holds_follow ON workflows_run;
DROP FUNCTION reconciliation_holds_follow();
DROP TRIGGER tenant ON reconciliation_hold;
DROP FUNCTION reconciliation_hold_tenant();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("reconciliation", "0016_password_reset"),
        ("workflows", "0007_boundary"),
    ]

    operations = [
        migrations.AddField(
            model_name="hold",
            name="tenant",
            field=models.ForeignKey(
                db_index=False,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="workflows.tenant",
            ),
        ),
        migrations.RunSQL(FILL_IN, FILL_IN_BACK),
        migrations.AddIndex(
            model_name="hold",
            index=models.Index(
                condition=models.Q(("state", reconciliation.core.states.HoldState["OPEN"])),
                fields=["tenant", "queue"],
                name="hold_open_tenant",
            ),
        ),
    ]
