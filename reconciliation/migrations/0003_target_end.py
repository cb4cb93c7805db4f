"""What an operation was about is found by its end, such as the number of an order."""

from __future__ import annotations

from django.db import migrations, models
from django.db.models.functions import Collate, Reverse


class Migration(migrations.Migration):
    dependencies = [("reconciliation", "0002_triggers")]

    operations = [
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(Collate(Reverse("target"), "C"), name="operation_target_end"),
        ),
    ]
