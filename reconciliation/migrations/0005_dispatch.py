"""Dispatch has switches of its own, for more than one provider and for parts of one."""

from __future__ import annotations

from typing import Any

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import workflows.models.ids

REASON = "It was so before switches had reasons; the audit record says who threw it."


def carry_over(apps: Any, _editor: Any) -> None:
    """What was stopped stays stopped."""
    provider, stop = (
        apps.get_model("reconciliation", name) for name in ("Provider", "DispatchStop")
    )
    for each in provider.objects.exclude(dispatch="on"):
        stop.objects.create(provider=each, state=each.dispatch, by="system", reason=REASON)


class Migration(migrations.Migration):
    dependencies = [
        ("reconciliation", "0004_rehearsals"),
        ("workflows", "0003_events"),
    ]

    operations = [
        migrations.CreateModel(
            name="DispatchStop",
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
                    "provider",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="stops",
                        to="reconciliation.provider",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="workflows.tenant",
                    ),
                ),
                ("action", models.CharField(blank=True, default="", max_length=100)),
                ("state", models.CharField(max_length=8)),
                ("by", models.CharField(max_length=200)),
                ("reason", models.CharField(max_length=1000)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("until", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("provider", "tenant", "action"),
                        name="dispatch_stop_once",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(state__in=["paused", "off"]),
                        name="dispatch_stop_state_known",
                    ),
                ],
                "indexes": [
                    models.Index(
                        condition=models.Q(until__isnull=False),
                        fields=["until"],
                        name="dispatch_stop_ends",
                    )
                ],
            },
        ),
        migrations.RunPython(carry_over, migrations.RunPython.noop),
        # Its foreign keys are checked now, so that the table that they name can be changed.
        migrations.RunSQL("SET CONSTRAINTS ALL IMMEDIATE", migrations.RunSQL.noop),
        migrations.RemoveConstraint(model_name="provider", name="provider_dispatch_known"),
        migrations.RemoveField(model_name="provider", name="dispatch"),
    ]
