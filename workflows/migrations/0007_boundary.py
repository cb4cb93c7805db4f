"""Policies, proposals, approvals and the record of the authorisation boundary (promise P11).

Versions of policies, answers to proposals and the boundary's own answers are only added to. Of a
proposal only how it ends, and which operation has used it, is written later, and once.
"""

from __future__ import annotations

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import workflows.core.proposals
import workflows.models.ids

FORWARD = """
CREATE FUNCTION workflows_boundary_never() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the record of the boundary is append-only: % on % is refused', TG_OP,
        TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;

CREATE FUNCTION workflows_proposal_fixed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (to_jsonb(NEW) - '{state,ended_at,followed_at,used_by,used_at}'::text[])
       IS DISTINCT FROM
       (to_jsonb(OLD) - '{state,ended_at,followed_at,used_by,used_at}'::text[])
    THEN
        RAISE EXCEPTION 'what proposal % proposes does not change', OLD.id
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF OLD.state <> 'open' AND (NEW.state, NEW.ended_at) IS DISTINCT FROM (OLD.state, OLD.ended_at)
    THEN
        RAISE EXCEPTION 'proposal % ended as %, and does not change', OLD.id, OLD.state
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF OLD.used_by IS NOT NULL AND (NEW.used_by, NEW.used_at) IS DISTINCT FROM
       (OLD.used_by, OLD.used_at)
    THEN
        RAISE EXCEPTION 'proposal % was used, and counts once', OLD.id
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
"""
BACKWARD = """
DROP FUNCTION workflows_boundary_never() CASCADE;
DROP FUNCTION workflows_proposal_fixed() CASCADE;
"""
KEPT = ("policyversion", "proposal", "approval", "authorisationrecord")
FROZEN = ("policyversion", "approval", "authorisationrecord")


def statements() -> str:
    never = "EXECUTE FUNCTION workflows_boundary_never();"
    made = [FORWARD]
    for table in KEPT:
        made.append(
            f"CREATE TRIGGER no_delete BEFORE DELETE ON workflows_{table} FOR EACH ROW {never}"
        )
        made.append(
            f"CREATE TRIGGER no_truncate BEFORE TRUNCATE ON workflows_{table} "
            f"FOR EACH STATEMENT {never}"
        )
    made += [
        f"CREATE TRIGGER no_update BEFORE UPDATE ON workflows_{table} FOR EACH ROW {never}"
        for table in FROZEN
    ]
    made.append(
        "CREATE TRIGGER fixed BEFORE UPDATE ON workflows_proposal "
        "FOR EACH ROW EXECUTE FUNCTION workflows_proposal_fixed();"
    )
    return "\n".join(made)


class Migration(migrations.Migration):
    dependencies = [
        ("workflows", "0006_accounts"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="tenant",
            options={
                "permissions": [
                    ("view_payloads", "Can see inputs, outputs and what was sent"),
                    ("control_runs", "Can cancel, pause and resume runs"),
                    ("approve_actions", "Can answer proposed actions"),
                    ("configure", "Can set it up"),
                ]
            },
        ),
        migrations.CreateModel(
            name="AccessToken",
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
                ("label", models.CharField(max_length=100)),
                ("digest", models.CharField(max_length=64)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="access_tokens",
                        to="workflows.tenant",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="PolicyVersion",
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
                ("version", models.IntegerField()),
                ("document", models.JSONField()),
                ("note", models.CharField(max_length=1000)),
                ("made_by", models.CharField(max_length=150)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="policies",
                        to="workflows.tenant",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Proposal",
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
                ("root", models.UUIDField()),
                ("step", models.CharField(max_length=63)),
                ("visit", models.IntegerField()),
                ("action", models.CharField(max_length=100)),
                ("target", models.CharField(max_length=300)),
                ("summary", models.CharField(max_length=300)),
                ("amount", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                ("currency", models.CharField(blank=True, max_length=3)),
                ("reason", models.CharField(blank=True, max_length=1000)),
                ("parameters_sealed", models.BinaryField()),
                ("parameters_digest", models.CharField(max_length=100)),
                ("proposed_by", models.CharField(max_length=200)),
                ("on_behalf_of", models.CharField(blank=True, max_length=200)),
                ("asked_by", models.CharField(blank=True, max_length=200)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("expires_at", models.DateTimeField()),
                (
                    "state",
                    models.CharField(
                        default=workflows.core.proposals.ProposalState["OPEN"], max_length=16
                    ),
                ),
                ("ended_at", models.DateTimeField(null=True)),
                ("followed_at", models.DateTimeField(null=True)),
                ("used_by", models.UUIDField(null=True)),
                ("used_at", models.DateTimeField(null=True)),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="proposals",
                        to="workflows.run",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="proposals",
                        to="workflows.tenant",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="AuthorisationRecord",
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
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("asked", models.CharField(max_length=16)),
                ("subject", models.CharField(max_length=200)),
                ("on_behalf_of", models.CharField(blank=True, max_length=200)),
                ("action", models.CharField(max_length=100)),
                ("allowed", models.BooleanField()),
                ("failed", models.CharField(blank=True, max_length=24)),
                ("reason", models.CharField(max_length=1000)),
                ("findings", models.JSONField()),
                ("inputs_digest", models.CharField(max_length=100)),
                ("inputs_sealed", models.BinaryField(null=True)),
                ("decision_id", models.CharField(blank=True, max_length=200)),
                ("run", models.UUIDField(null=True)),
                ("step", models.CharField(blank=True, max_length=63)),
                ("operation", models.UUIDField(null=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="authorisations",
                        to="workflows.tenant",
                    ),
                ),
                (
                    "policy",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="workflows.policyversion",
                    ),
                ),
                (
                    "proposal",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="authorisations",
                        to="workflows.proposal",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Approval",
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
                ("answer", models.CharField(max_length=16)),
                ("subject", models.CharField(max_length=200)),
                ("by_name", models.CharField(max_length=200)),
                ("note", models.CharField(blank=True, max_length=2000)),
                ("digest", models.CharField(max_length=100)),
                ("token", models.UUIDField(unique=True)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="approvals",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "event",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, to="workflows.event"
                    ),
                ),
                (
                    "proposal",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="answers",
                        to="workflows.proposal",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ServiceAccount",
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
                    "kind",
                    models.CharField(
                        choices=[("agent", "agent"), ("service", "service account")], max_length=16
                    ),
                ),
                (
                    "slug",
                    models.CharField(
                        max_length=100,
                        validators=[
                            django.core.validators.RegexValidator("^[A-Za-z0-9][A-Za-z0-9._@-]*$")
                        ],
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("active", models.BooleanField(default=True)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="policyversion",
            constraint=models.UniqueConstraint(
                fields=("tenant", "version"), name="policy_version_once", nulls_distinct=False
            ),
        ),
        migrations.AddIndex(
            model_name="proposal",
            index=models.Index(fields=["run", "-id"], name="proposal_run"),
        ),
        migrations.AddIndex(
            model_name="proposal",
            index=models.Index(fields=["root", "-id"], name="proposal_root"),
        ),
        migrations.AddIndex(
            model_name="proposal",
            index=models.Index(
                condition=models.Q(("state", workflows.core.proposals.ProposalState["OPEN"])),
                fields=["tenant", "-id"],
                name="proposal_open",
            ),
        ),
        migrations.AddIndex(
            model_name="proposal",
            index=models.Index(fields=["tenant", "-id"], name="proposal_newest"),
        ),
        migrations.AddConstraint(
            model_name="proposal",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("ended_at__isnull", True),
                        ("state", workflows.core.proposals.ProposalState["OPEN"]),
                    ),
                    models.Q(
                        ("ended_at__isnull", False),
                        ("state__in", ["approved", "denied", "sent_back", "expired", "cancelled"]),
                    ),
                    _connector="OR",
                ),
                name="proposal_state_consistent",
            ),
        ),
        migrations.AddConstraint(
            model_name="proposal",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("used_by__isnull", True),
                    ("state", workflows.core.proposals.ProposalState["APPROVED"]),
                    _connector="OR",
                ),
                name="proposal_used_only_if_approved",
            ),
        ),
        migrations.AddConstraint(
            model_name="proposal",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", workflows.core.proposals.ProposalState["OPEN"])),
                fields=("root",),
                name="proposal_one_open_per_root",
            ),
        ),
        migrations.AddIndex(
            model_name="authorisationrecord",
            index=models.Index(fields=["tenant", "-id"], name="authorisation_newest"),
        ),
        migrations.AddIndex(
            model_name="authorisationrecord",
            index=models.Index(
                condition=models.Q(("proposal__isnull", False)),
                fields=["proposal", "-id"],
                name="authorisation_proposal",
            ),
        ),
        migrations.AddIndex(
            model_name="authorisationrecord",
            index=models.Index(
                condition=models.Q(("operation__isnull", False)),
                fields=["operation", "-id"],
                name="authorisation_operation",
            ),
        ),
        migrations.AddConstraint(
            model_name="authorisationrecord",
            constraint=models.CheckConstraint(
                condition=models.Q(("asked__in", ["proposal", "write", "served"])),
                name="authorisation_asked_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="authorisationrecord",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("allowed", True), ("failed", "")),
                    models.Q(("allowed", False), models.Q(("failed", ""), _negated=True)),
                    _connector="OR",
                ),
                name="authorisation_denied_names_check",
            ),
        ),
        migrations.AddIndex(
            model_name="approval",
            index=models.Index(fields=["proposal", "id"], name="approval_proposal"),
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("answer__in", ["approve", "deny", "question", "reply", "withdraw"])
                ),
                name="approval_answer_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="serviceaccount",
            constraint=models.UniqueConstraint(
                fields=("kind", "slug"), name="service_account_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="serviceaccount",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["agent", "service"])),
                name="service_account_kind_known",
            ),
        ),
        migrations.RunSQL(statements(), BACKWARD),
    ]
