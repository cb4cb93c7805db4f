"""The right to set a queue up, and the table in which signing in is throttled.

The table is as `createcachetable` makes it, so that many consoles count together. Unlogged: a crash
of the database may forget who tried how often.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("reconciliation", "0009_profile")]

    operations = [
        migrations.AlterModelOptions(
            name="reviewqueue",
            options={
                "permissions": [
                    ("decide", "Can decide holds"),
                    ("assign", "Can assign holds"),
                    ("second", "Can confirm the decisions of others"),
                    ("configure", "Can set it up"),
                ]
            },
        ),
        migrations.RunSQL(
            sql="""
                CREATE UNLOGGED TABLE romulus_cache (
                    cache_key varchar(255) NOT NULL PRIMARY KEY,
                    value text NOT NULL,
                    expires timestamp with time zone NOT NULL
                );
                CREATE INDEX romulus_cache_expires ON romulus_cache (expires);
            """,
            reverse_sql="DROP TABLE romulus_cache",
        ),
    ]
