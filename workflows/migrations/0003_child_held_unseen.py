"""A held child's end is unseen, too, until its parent has given its place to the next."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workflows", "0002_triggers"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="run",
            name="run_end_unseen",
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(
                    ("end_seen_at__isnull", True),
                    ("parent__isnull", False),
                    models.Q(
                        ("finished_at__isnull", False),
                        ("state", "held"),
                        _connector="OR",
                    ),
                ),
                fields=["parent"],
                name="run_end_unseen",
            ),
        ),
    ]
