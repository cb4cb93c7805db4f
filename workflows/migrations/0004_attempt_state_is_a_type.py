"""That an attempt's state is known is the business of the column's type, and no longer a trigger's.

The trigger ran its function once for each step, which was a twentieth of the server's work for one.
The check of a domain is prepared once in each session (`0002_triggers` says what a check of a table
costs). It is added after the column has changed its type, which so rewrites no row.
"""

from __future__ import annotations

from importlib import import_module

from django.db import migrations

TO_TYPE = """
DROP TRIGGER attempt_state_known ON workflows_attempt;
DROP FUNCTION workflows_attempt_state_known();
CREATE DOMAIN workflows_attempt_state AS varchar(16);
ALTER TABLE workflows_attempt ALTER COLUMN state TYPE workflows_attempt_state;
ALTER DOMAIN workflows_attempt_state ADD CONSTRAINT attempt_state_known
    CHECK (VALUE IN ('committed', 'failed', 'lost', 'superseded'));
"""
TO_TRIGGER = """
ALTER TABLE workflows_attempt ALTER COLUMN state TYPE varchar(16);
DROP DOMAIN workflows_attempt_state;
"""


class Migration(migrations.Migration):
    dependencies = [("workflows", "0003_child_held_unseen")]

    operations = [
        migrations.RunSQL(
            TO_TYPE, TO_TRIGGER + import_module("workflows.migrations.0002_triggers").ATTEMPT_STATE
        )
    ]
