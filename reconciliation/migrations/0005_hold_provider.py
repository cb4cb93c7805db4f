"""A hold keeps whose key its window rests on, as it keeps the window: each page counts by it."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

OF_OPERATION = """
UPDATE reconciliation_hold hold SET provider_id = operation.provider_id
FROM reconciliation_operation operation WHERE operation.id = hold.operation_id
"""


class Migration(migrations.Migration):
    dependencies = [("reconciliation", "0004_bulk_item_had")]

    operations = [
        migrations.AddField(
            model_name="hold",
            name="provider",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="reconciliation.provider",
            ),
        ),
        migrations.RunSQL(OF_OPERATION, migrations.RunSQL.noop),
    ]
