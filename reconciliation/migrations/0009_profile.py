"""How people want the console, and where search and the overview find rows of the ledger."""

from __future__ import annotations

import django.db.models.deletion
import django.db.models.functions.comparison
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("reconciliation", "0008_notifications"),
        ("workflows", "0005_search"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Profile",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="profile",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "time_zone",
                    models.CharField(blank=True, db_default="", default="", max_length=64),
                ),
                ("letters", models.BooleanField(db_default=True, default=True)),
                ("live", models.BooleanField(db_default=True, default=True)),
            ],
        ),
        migrations.AddIndex(
            model_name="evidence",
            index=models.Index(
                condition=models.Q(("source", "duplicate audit")),
                fields=["-recorded_at"],
                name="evidence_double",
            ),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(
                django.db.models.functions.text.Right(
                    django.db.models.functions.comparison.Cast("id", models.CharField()), 6
                ),
                name="operation_id_end",
            ),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(
                django.db.models.functions.comparison.Collate("target", "C"),
                name="operation_target",
            ),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(
                django.db.models.functions.comparison.Collate("resource", "C"),
                condition=models.Q(("resource", ""), _negated=True),
                name="operation_resource",
            ),
        ),
        migrations.AddIndex(
            model_name="transmission",
            index=models.Index(
                django.db.models.functions.comparison.Collate("provider_request_id", "C"),
                condition=models.Q(("provider_request_id", ""), _negated=True),
                name="transmission_request_id",
            ),
        ),
    ]
