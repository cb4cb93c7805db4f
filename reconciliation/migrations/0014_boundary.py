"""External decision points; and what people have approved of an operation, which is fixed."""

from __future__ import annotations

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import workflows.models.ids

FORWARD = """
CREATE FUNCTION reconciliation_proposal_fixed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.proposal_id IS DISTINCT FROM OLD.proposal_id THEN
        RAISE EXCEPTION 'the identity of operation % does not change', OLD.id
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER proposal_fixed BEFORE UPDATE ON reconciliation_operation
    FOR EACH ROW EXECUTE FUNCTION reconciliation_proposal_fixed();
"""
BACKWARD = "DROP FUNCTION reconciliation_proposal_fixed() CASCADE;"


class Migration(migrations.Migration):
    dependencies = [
        ("reconciliation", "0013_review_work"),
        ("workflows", "0007_boundary"),
    ]

    operations = [
        migrations.CreateModel(
            name="DecisionPoint",
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
                ("slug", models.SlugField(unique=True)),
                ("name", models.CharField(max_length=200)),
                ("base_url", models.CharField(max_length=300)),
                ("credential_sealed", models.BinaryField(default=b"")),
                (
                    "timeout_seconds",
                    models.FloatField(
                        default=2.0,
                        validators=[
                            django.core.validators.MinValueValidator(0.1),
                            django.core.validators.MaxValueValidator(30),
                        ],
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
        ),
        migrations.AddField(
            model_name="operation",
            name="proposal",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="operations",
                to="workflows.proposal",
            ),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(
                condition=models.Q(("proposal__isnull", False)),
                fields=["proposal"],
                name="operation_proposal",
            ),
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
    ]
