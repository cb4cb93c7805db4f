"""The chain of the audit record can prove single entries; its page narrows down by index; evidence
keeps which fields of a record fit; a provider's own page of a record can be linked to."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reconciliation", "0010_accounts")]

    operations = [
        migrations.AddField("auditentry", "salt", models.CharField(default="", max_length=32)),
        migrations.AddField("auditentry", "skip_hash", models.CharField(default="", max_length=64)),
        migrations.AddField("evidence", "agreements", models.JSONField(default=list)),
        migrations.AddField(
            "provider", "dashboard_url", models.CharField(blank=True, default="", max_length=300)
        ),
        migrations.AddIndex(
            "auditentry", models.Index(fields=["actor", "seq"], name="audit_actor")
        ),
        migrations.AddIndex("auditentry", models.Index(fields=["verb", "seq"], name="audit_verb")),
        migrations.AddIndex("auditentry", models.Index(fields=["at", "seq"], name="audit_at")),
    ]
