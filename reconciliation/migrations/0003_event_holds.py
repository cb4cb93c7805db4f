from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

import reconciliation.core.states


class Migration(migrations.Migration):
    """A hold may be of an event that more than one wait could take."""

    dependencies = [
        ("reconciliation", "0002_append_only"),
        ("workflows", "0003_events"),
    ]

    operations = [
        migrations.AddField(
            model_name="hold",
            name="event",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="holds",
                to="workflows.event",
            ),
        ),
        migrations.AlterField(
            model_name="hold",
            name="run",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="holds",
                to="workflows.run",
            ),
        ),
        migrations.AddConstraint(
            model_name="hold",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("event__isnull", True), ("run__isnull", False)),
                    models.Q(
                        ("event__isnull", False),
                        ("operation__isnull", True),
                        ("run__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="hold_of_a_run_or_an_event",
            ),
        ),
        migrations.AddConstraint(
            model_name="hold",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", reconciliation.core.states.HoldState["OPEN"])),
                fields=("event",),
                name="hold_one_open_per_event",
            ),
        ),
    ]
