"""An operation whose sends all never left has not begun its protection window.

What protects it is fixed from the first send of which anything may have arrived.
"""

from __future__ import annotations

from importlib import import_module

from django.db import migrations

BEFORE = import_module("reconciliation.migrations.0002_append_only").FORWARD
START = BEFORE.index("CREATE FUNCTION reconciliation_operation_identity")
END = BEFORE.index("CREATE FUNCTION reconciliation_transmission_once")
AS_IT_WAS = BEFORE[START:END].replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")

WHERE = "IS DISTINCT FROM (OLD.first_sent_at, OLD.replay_not_after)\n"
ANY_LEFT = """       AND EXISTS (SELECT 1 FROM reconciliation_transmission
                   WHERE operation_id = OLD.id AND state <> 'not_sent')
"""
AS_IT_IS = AS_IT_WAS.replace(WHERE, WHERE + ANY_LEFT)
assert AS_IT_IS != AS_IT_WAS


class Migration(migrations.Migration):
    dependencies = [("reconciliation", "0006_addresses")]

    operations = [migrations.RunSQL(AS_IT_IS, AS_IT_WAS)]
