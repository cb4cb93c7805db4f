"""Decisions that take two people, drafts, corrections, and second operations that are linked.

Proposals and their ends are of the ledger: added to, never changed. What an operation replaces or
undoes is of its identity.
"""

from __future__ import annotations

from importlib import import_module

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import reconciliation.core.states
import workflows.models.ids

AS_IT_WAS = import_module("reconciliation.migrations.0007_never_sent").AS_IT_IS
LINKS = "supersedes_id, {0}.compensates_id,"
AS_IT_IS = AS_IT_WAS.replace("NEW.supersedes_id,", f"NEW.{LINKS.format('NEW')}").replace(
    "OLD.supersedes_id,", f"OLD.{LINKS.format('OLD')}"
)
assert AS_IT_IS.count("compensates_id") == 2  # noqa: PLR2004 (before and after)

LEDGER = ("decisionproposal", "proposalend")


def forward_statements() -> str:
    each = "FOR EACH ROW EXECUTE FUNCTION reconciliation_never();"
    statements = [AS_IT_IS]
    for table in LEDGER:
        statements += [
            f"CREATE TRIGGER no_delete BEFORE DELETE ON reconciliation_{table} {each}",
            f"CREATE TRIGGER no_update BEFORE UPDATE ON reconciliation_{table} {each}",
            f"CREATE TRIGGER no_truncate BEFORE TRUNCATE ON reconciliation_{table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION reconciliation_never();",
        ]
    return "\n".join(statements)


class Migration(migrations.Migration):
    dependencies = [
        ("reconciliation", "0014_boundary"),
        ("workflows", "0003_events"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="DecisionDraft",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("case", models.UUIDField()),
                ("typed", models.JSONField()),
                (
                    "saved_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
        ),
        migrations.CreateModel(
            name="DecisionProposal",
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
                ("by_name", models.CharField(max_length=320)),
                ("note", models.TextField()),
                ("resource", models.CharField(blank=True, max_length=300)),
                ("hold_version", models.PositiveIntegerField()),
                ("token", models.UUIDField()),
                ("shown", models.JSONField()),
                ("basis", models.JSONField()),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name="ProposalEnd",
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
                ("by_name", models.CharField(blank=True, max_length=320)),
                ("note", models.TextField(blank=True)),
                ("token", models.UUIDField(null=True)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.RemoveConstraint(
            model_name="decision",
            name="decision_kind_known",
        ),
        migrations.AddField(
            model_name="decision",
            name="corrects",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="corrections",
                to="reconciliation.decision",
            ),
        ),
        migrations.AddField(
            model_name="decision",
            name="second",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="decision",
            name="second_name",
            field=models.CharField(blank=True, max_length=320),
        ),
        migrations.AddField(
            model_name="operation",
            name="compensates",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="undos",
                to="reconciliation.operation",
            ),
        ),
        migrations.AddField(
            model_name="reviewqueue",
            name="approvals_needed",
            field=models.PositiveSmallIntegerField(
                choices=[(1, "one person"), (2, "two people")], default=1
            ),
        ),
        migrations.AddField(
            model_name="reviewqueue",
            name="second_from",
            field=models.DecimalField(
                blank=True,
                decimal_places=4,
                max_digits=20,
                null=True,
                validators=[django.core.validators.MinValueValidator(0)],
            ),
        ),
        migrations.AlterField(
            model_name="operation",
            name="supersedes",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="replacements",
                to="reconciliation.operation",
            ),
        ),
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.UniqueConstraint(
                condition=models.Q(("supersedes__isnull", False)),
                fields=("supersedes",),
                name="operation_replaced_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.UniqueConstraint(
                condition=models.Q(("compensates__isnull", False), ("supersedes__isnull", True)),
                fields=("compensates",),
                name="operation_undone_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="reviewqueue",
            constraint=models.CheckConstraint(
                condition=models.Q(("approvals_needed__in", [1, 2])), name="queue_one_person_or_two"
            ),
        ),
        migrations.AddField(
            model_name="decisiondraft",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="decision_drafts",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="decisionproposal",
            name="by",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="decisionproposal",
            name="hold",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="proposals",
                to="reconciliation.hold",
            ),
        ),
        migrations.AddField(
            model_name="decisionproposal",
            name="operation",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="proposals",
                to="reconciliation.operation",
            ),
        ),
        migrations.AddField(
            model_name="decision",
            name="proposal",
            field=models.OneToOneField(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="decision",
                to="reconciliation.decisionproposal",
            ),
        ),
        migrations.AddField(
            model_name="hold",
            name="proposal",
            field=models.OneToOneField(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="reconciliation.decisionproposal",
            ),
        ),
        migrations.AddIndex(
            model_name="hold",
            index=models.Index(
                condition=models.Q(
                    ("proposal__isnull", False),
                    ("state", reconciliation.core.states.HoldState["OPEN"]),
                ),
                fields=["due_at", "id"],
                name="hold_open_second",
            ),
        ),
        migrations.AddConstraint(
            model_name="decision",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        [
                            "applied",
                            "send_again",
                            "abandon",
                            "replace",
                            "undo",
                            "keep_holding",
                            "correction",
                            "try_again",
                            "fail_run",
                        ],
                    )
                ),
                name="decision_kind_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="decision",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("proposal", None), ("second", None)),
                    models.Q(
                        ("proposal__isnull", False),
                        ("second__isnull", False),
                        models.Q(("second", models.F("by")), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="decision_second_is_another",
            ),
        ),
        migrations.AddConstraint(
            model_name="decision",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("corrects__isnull", False),
                        ("kind", reconciliation.core.states.DecisionKind["CORRECTION"]),
                    ),
                    models.Q(
                        models.Q(
                            ("kind", reconciliation.core.states.DecisionKind["CORRECTION"]),
                            _negated=True,
                        ),
                        ("corrects", None),
                    ),
                    _connector="OR",
                ),
                name="decision_correction_corrects",
            ),
        ),
        migrations.AddConstraint(
            model_name="hold",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state", reconciliation.core.states.HoldState["OPEN"]),
                    ("proposal", None),
                    _connector="OR",
                ),
                name="hold_proposal_only_while_open",
            ),
        ),
        migrations.AddField(
            model_name="proposalend",
            name="by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="proposalend",
            name="proposal",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="end",
                to="reconciliation.decisionproposal",
            ),
        ),
        migrations.AddConstraint(
            model_name="decisiondraft",
            constraint=models.UniqueConstraint(
                fields=("user", "case"), name="draft_one_per_person_and_case"
            ),
        ),
        migrations.AddConstraint(
            model_name="decisionproposal",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        [
                            "applied",
                            "send_again",
                            "abandon",
                            "replace",
                            "undo",
                            "keep_holding",
                            "correction",
                            "try_again",
                            "fail_run",
                        ],
                    )
                ),
                name="proposal_kind_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="decisionproposal",
            constraint=models.UniqueConstraint(fields=("token",), name="proposal_once_per_form"),
        ),
        migrations.AddConstraint(
            model_name="decisionproposal",
            constraint=models.UniqueConstraint(
                fields=("hold", "hold_version"), name="proposal_once_per_hold_version"
            ),
        ),
        migrations.AddConstraint(
            model_name="proposalend",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["confirmed", "refused", "withdrawn", "void"])),
                name="proposal_end_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="proposalend",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("by", None), ("kind", reconciliation.core.states.ProposalEndKind["VOID"])
                    ),
                    models.Q(
                        models.Q(
                            ("kind", reconciliation.core.states.ProposalEndKind["VOID"]),
                            _negated=True,
                        ),
                        ("by__isnull", False),
                        ("token__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="proposal_end_by_somebody",
            ),
        ),
        migrations.AddConstraint(
            model_name="proposalend",
            constraint=models.UniqueConstraint(
                fields=("token",), name="proposal_end_once_per_form"
            ),
        ),
        migrations.RunSQL(forward_statements(), AS_IT_WAS),
    ]
