"""How often a provider may be asked, when it may be next, and the turn of each operation."""

from __future__ import annotations

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("reconciliation", "0017_tenant_of_holds"),
    ]

    operations = [
        migrations.CreateModel(
            name="LookUpPace",
            fields=[
                (
                    "provider",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="pace",
                        serialize=False,
                        to="reconciliation.provider",
                    ),
                ),
                ("next_at", models.DateTimeField()),
                ("paused_until", models.DateTimeField(null=True)),
            ],
        ),
        migrations.AddField(
            model_name="operation",
            name="turn_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="provider",
            name="look_ups_per_second",
            field=models.FloatField(
                db_default=10,
                default=10,
                validators=[
                    django.core.validators.MinValueValidator(0.01),
                    django.core.validators.MaxValueValidator(1000.0),
                ],
            ),
        ),
        migrations.AddConstraint(
            model_name="provider",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("look_ups_per_second__gte", 0.01), ("look_ups_per_second__lte", 1000.0)
                ),
                name="provider_look_up_rate",
            ),
        ),
    ]
