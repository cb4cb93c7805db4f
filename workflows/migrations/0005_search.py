"""Where search finds runs, events and waits."""

from __future__ import annotations

import django.contrib.postgres.indexes
import django.db.models.functions.comparison
import django.db.models.functions.text
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workflows", "0004_engine"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="event",
            index=models.Index(
                django.db.models.functions.text.Right(
                    django.db.models.functions.comparison.Cast("id", models.CharField()), 6
                ),
                name="event_id_end",
            ),
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(
                django.db.models.functions.comparison.Collate("event_id", "C"),
                condition=models.Q(("event_id__isnull", False)),
                name="event_event_id",
            ),
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(
                django.db.models.functions.comparison.Collate("correlation", "C"),
                name="event_correlation",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                django.db.models.functions.text.Right(
                    django.db.models.functions.comparison.Cast("id", models.CharField()), 6
                ),
                name="run_id_end",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                django.db.models.functions.comparison.Collate("start_key", "C"),
                condition=models.Q(("start_key__isnull", False)),
                name="run_start_key",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=django.contrib.postgres.indexes.GinIndex(
                condition=models.Q(("labels", {}), _negated=True),
                fields=["labels"],
                name="run_labels",
            ),
        ),
        migrations.AddIndex(
            model_name="wait",
            index=models.Index(
                django.db.models.functions.comparison.Collate("correlation", "C"),
                name="wait_correlation_begins",
            ),
        ),
    ]
