"""Which groups a policy means by the names that it uses, and tokens of people.

Versions that are there already mean the groups that have those names now.
"""

from __future__ import annotations

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

MEANT = """
ALTER TABLE workflows_policyversion DISABLE TRIGGER USER;
UPDATE workflows_policyversion
   SET groups = (SELECT coalesce(jsonb_object_agg(name, id), '{}') FROM auth_group);
ALTER TABLE workflows_policyversion ENABLE TRIGGER USER;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("workflows", "0009_state_triggers"),
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="policyversion",
            name="groups",
            field=models.JSONField(default=dict),
        ),
        migrations.RunSQL(MEANT, migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="accesstoken",
            name="tenant",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="access_tokens",
                to="workflows.tenant",
            ),
        ),
        migrations.AddField(
            model_name="accesstoken",
            name="person",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="access_tokens",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddConstraint(
            model_name="accesstoken",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("person__isnull", True), ("tenant__isnull", False)),
                    models.Q(("person__isnull", False), ("tenant__isnull", True)),
                    _connector="OR",
                ),
                name="access_token_of_one",
            ),
        ),
    ]
