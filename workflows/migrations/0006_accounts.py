"""The right to set a tenant or a source up."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("workflows", "0005_search")]

    operations = [
        migrations.AlterModelOptions(
            name="eventsource",
            options={
                "permissions": [
                    ("send_event", "Can send events by hand"),
                    ("configure", "Can set it up"),
                ]
            },
        ),
        migrations.AlterModelOptions(
            name="tenant",
            options={
                "permissions": [
                    ("view_payloads", "Can see inputs, outputs and what was sent"),
                    ("control_runs", "Can cancel, pause and resume runs"),
                    ("configure", "Can set it up"),
                ]
            },
        ),
    ]
