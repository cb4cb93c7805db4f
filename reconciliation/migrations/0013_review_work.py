"""What people do around a held case: notes, reminders, saved views, bulk actions, snoozing.

What is said about a case is never edited or deleted, as the ledger is not.
"""

from __future__ import annotations

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import reconciliation.core.review_work
import reconciliation.core.states
import workflows.models.ids

NOTES = """
CREATE TRIGGER no_delete BEFORE DELETE ON reconciliation_casenote
FOR EACH ROW EXECUTE FUNCTION reconciliation_never();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON reconciliation_casenote
FOR EACH STATEMENT EXECUTE FUNCTION reconciliation_never();
CREATE TRIGGER no_update BEFORE UPDATE ON reconciliation_casenote
FOR EACH ROW EXECUTE FUNCTION reconciliation_never();
"""
NOTES_BACK = """
DROP TRIGGER no_delete ON reconciliation_casenote;
DROP TRIGGER no_truncate ON reconciliation_casenote;
DROP TRIGGER no_update ON reconciliation_casenote;
"""
# What holds that are there already are sorted by.
FILL = """
UPDATE reconciliation_hold SET amount = o.amount, window_ends_at = o.replay_not_after
FROM reconciliation_operation o WHERE o.id = reconciliation_hold.operation_id;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("reconciliation", "0012_engine"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="BulkAction",
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
                ("kind", models.CharField(max_length=16)),
                ("token", models.UUIDField(unique=True)),
                ("until", models.DateTimeField(null=True)),
                (
                    "made_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("taken_until", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="BulkItem",
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
                ("number", models.PositiveIntegerField()),
                (
                    "state",
                    models.CharField(
                        default=reconciliation.core.review_work.ItemState["PENDING"], max_length=8
                    ),
                ),
                ("said", models.CharField(blank=True, max_length=500)),
                ("ended_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="CaseNote",
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
                ("kind", models.CharField(max_length=16)),
                ("text", models.TextField()),
                ("by_name", models.CharField(max_length=320)),
                ("to_name", models.CharField(blank=True, max_length=320)),
                ("token", models.UUIDField(unique=True)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name="Reminder",
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
                ("at", models.DateTimeField()),
                (
                    "made_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("told_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="SavedView",
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
                ("name", models.CharField(max_length=60)),
                ("query", models.CharField(blank=True, max_length=1000)),
                ("made_by", models.CharField(max_length=320)),
                (
                    "made_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
        ),
        migrations.AddField(
            model_name="hold",
            name="amount",
            field=models.DecimalField(decimal_places=4, max_digits=20, null=True),
        ),
        migrations.AddField(
            model_name="hold",
            name="snoozed_until",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="hold",
            name="window_ends_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddIndex(
            model_name="hold",
            index=models.Index(
                models.OrderBy(models.F("amount"), descending=True, nulls_last=True),
                models.OrderBy(models.F("id")),
                condition=models.Q(("state", reconciliation.core.states.HoldState["OPEN"])),
                name="hold_open_amount",
            ),
        ),
        migrations.AddIndex(
            model_name="hold",
            index=models.Index(
                condition=models.Q(("state", reconciliation.core.states.HoldState["OPEN"])),
                fields=["window_ends_at", "id"],
                name="hold_open_window",
            ),
        ),
        migrations.AddIndex(
            model_name="hold",
            index=models.Index(
                condition=models.Q(("state", reconciliation.core.states.HoldState["OPEN"])),
                fields=["opened_at", "id"],
                name="hold_open_age",
            ),
        ),
        migrations.AddIndex(
            model_name="hold",
            index=models.Index(
                condition=models.Q(("state", reconciliation.core.states.HoldState["OPEN"])),
                fields=["assignee", "due_at", "id"],
                name="hold_open_assignee",
            ),
        ),
        migrations.AddField(
            model_name="bulkaction",
            name="by",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="bulkaction",
            name="to",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="bulkitem",
            name="action",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="items",
                to="reconciliation.bulkaction",
            ),
        ),
        migrations.AddField(
            model_name="bulkitem",
            name="hold",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="reconciliation.hold",
            ),
        ),
        migrations.AddField(
            model_name="casenote",
            name="by",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="casenote",
            name="hold",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="notes",
                to="reconciliation.hold",
            ),
        ),
        migrations.AddField(
            model_name="casenote",
            name="question",
            field=models.OneToOneField(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="answer",
                to="reconciliation.casenote",
            ),
        ),
        migrations.AddField(
            model_name="casenote",
            name="to",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="reminder",
            name="hold",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="reminders",
                to="reconciliation.hold",
            ),
        ),
        migrations.AddField(
            model_name="reminder",
            name="person",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="reminders",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="savedview",
            name="person",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="saved_views",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="savedview",
            name="queue",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="saved_views",
                to="reconciliation.reviewqueue",
            ),
        ),
        migrations.AddIndex(
            model_name="bulkaction",
            index=models.Index(
                condition=models.Q(("ended_at__isnull", True)),
                fields=["made_at"],
                name="bulk_action_open",
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkaction",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["assign", "snooze", "remind", "look_up"])),
                name="bulk_action_kind_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkitem",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["pending", "done", "skipped", "failed"])),
                name="bulk_item_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkitem",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("ended_at__isnull", True),
                        ("state", reconciliation.core.review_work.ItemState["PENDING"]),
                    ),
                    models.Q(
                        models.Q(
                            ("state", reconciliation.core.review_work.ItemState["PENDING"]),
                            _negated=True,
                        ),
                        ("ended_at__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="bulk_item_ended_iff_ended_at",
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkitem",
            constraint=models.UniqueConstraint(fields=("action", "hold"), name="bulk_item_once"),
        ),
        migrations.AddConstraint(
            model_name="bulkitem",
            constraint=models.UniqueConstraint(
                fields=("action", "number"), name="bulk_item_number"
            ),
        ),
        migrations.AddIndex(
            model_name="casenote",
            index=models.Index(fields=["hold", "at", "id"], name="case_note_thread"),
        ),
        migrations.AddIndex(
            model_name="casenote",
            index=models.Index(
                condition=models.Q(("kind", "question")),
                fields=["to", "hold"],
                name="case_note_questions",
            ),
        ),
        migrations.AddConstraint(
            model_name="casenote",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["comment", "question", "answer", "handover"])),
                name="case_note_kind_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="casenote",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("kind", reconciliation.core.review_work.NoteKind["ANSWER"]),
                        ("question__isnull", False),
                    ),
                    models.Q(
                        models.Q(
                            ("kind", reconciliation.core.review_work.NoteKind["ANSWER"]),
                            _negated=True,
                        ),
                        ("question__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="case_note_answers_iff_answer",
            ),
        ),
        migrations.AddIndex(
            model_name="reminder",
            index=models.Index(
                condition=models.Q(("ended_at__isnull", True), ("told_at__isnull", True)),
                fields=["at"],
                name="reminder_due",
            ),
        ),
        migrations.AddConstraint(
            model_name="reminder",
            constraint=models.UniqueConstraint(
                condition=models.Q(("ended_at", None)),
                fields=("hold", "person"),
                name="reminder_one_open_per_person",
            ),
        ),
        migrations.AddConstraint(
            model_name="savedview",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("person__isnull", False), ("queue__isnull", True)),
                    models.Q(("person__isnull", True), ("queue__isnull", False)),
                    _connector="OR",
                ),
                name="saved_view_of_a_person_or_a_queue",
            ),
        ),
        migrations.AddConstraint(
            model_name="savedview",
            constraint=models.UniqueConstraint(
                fields=("person", "name"), name="saved_view_name_per_person"
            ),
        ),
        migrations.AddConstraint(
            model_name="savedview",
            constraint=models.UniqueConstraint(
                fields=("queue", "name"), name="saved_view_name_per_queue"
            ),
        ),
        migrations.RunSQL(NOTES, NOTES_BACK),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
    ]
