"""Room on each page of runs, so that a step's new row version lies beside the old one.

PostgreSQL then changes no index for it (heap-only tuples), which halves what a step writes.
"""

from __future__ import annotations

from django.db import migrations

# Before the first release the first migration was made anew. A database of that time has it as
# applied, with other tables: it says so here, where it is first noticed, and stays as it is.
REFUSE_EARLIER_DATABASE = """
DO $$ BEGIN
    IF to_regclass('workflows_stepoutput') IS NOT NULL THEN
        RAISE EXCEPTION 'This database was made by Romulus before its first release, and its '
            'tables have changed since. Nothing was done to it. Make a new one: with make up, move '
            'the folder .romulus away; else name another database in DATABASE_URL.';
    END IF;
END $$
"""


class Migration(migrations.Migration):
    dependencies = [("workflows", "0001_initial")]

    operations = [
        migrations.RunSQL(REFUSE_EARLIER_DATABASE, migrations.RunSQL.noop),
        migrations.RunSQL(
            "ALTER TABLE workflows_run SET (fillfactor = 70)",
            "ALTER TABLE workflows_run RESET (fillfactor)",
        ),
    ]
