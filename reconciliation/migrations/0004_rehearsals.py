"""Sandboxes and rehearsals. What a rehearsal showed is added, never changed (promise P8)."""

from __future__ import annotations

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import workflows.models.ids

TABLE = "reconciliation_rehearsal"
TRIGGERS = {
    "no_delete": "BEFORE DELETE ON {} FOR EACH ROW",
    "no_update": "BEFORE UPDATE ON {} FOR EACH ROW",
    "no_truncate": "BEFORE TRUNCATE ON {} FOR EACH STATEMENT",
}
FORWARD = "".join(
    f"CREATE TRIGGER {name} {when.format(TABLE)} EXECUTE FUNCTION reconciliation_never();"
    for name, when in TRIGGERS.items()
)
BACKWARD = "".join(f"DROP TRIGGER IF EXISTS {name} ON {TABLE};" for name in TRIGGERS)


class Migration(migrations.Migration):
    dependencies = [
        ("reconciliation", "0003_event_holds"),
    ]

    operations = [
        migrations.CreateModel(
            name="Sandbox",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=workflows.models.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "base_url",
                    models.CharField(
                        max_length=300,
                        validators=[django.core.validators.URLValidator(["http", "https"])],
                    ),
                ),
                ("account", models.CharField(max_length=200)),
                ("region", models.CharField(blank=True, max_length=100)),
                ("credential_sealed", models.BinaryField(blank=True, default=b"")),
                ("action", models.CharField(max_length=100)),
                ("parameters", models.JSONField(default=dict)),
                (
                    "provider",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="sandbox",
                        to="reconciliation.provider",
                    ),
                ),
                (
                    "stand_in",
                    models.OneToOneField(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="stands_in_for",
                        to="reconciliation.provider",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "sandboxes",
            },
        ),
        migrations.CreateModel(
            name="Rehearsal",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=workflows.models.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("started_at", models.DateTimeField()),
                (
                    "ended_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("complete", models.BooleanField()),
                ("claims", models.JSONField()),
                ("cases", models.JSONField()),
                ("breaches", models.PositiveIntegerField()),
                (
                    "contract_version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        to="reconciliation.contractversion",
                    ),
                ),
                (
                    "provider",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="rehearsals",
                        to="reconciliation.provider",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["provider", "-ended_at"], name="rehearsal_latest")
                ],
            },
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
    ]
