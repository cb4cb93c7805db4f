"""A case that went to somebody else since the plan for many is not taken from them."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reconciliation", "0003_target_end")]

    operations = [
        migrations.AddField(
            model_name="bulkitem", name="had", field=models.IntegerField(null=True)
        ),
    ]
