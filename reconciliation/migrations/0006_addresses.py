from django.db import migrations, models


class Migration(migrations.Migration):
    """An address is checked by the rules of `core.addresses`; e-mail's begins with smtp."""

    dependencies = [
        ("reconciliation", "0005_dispatch"),
    ]

    operations = [
        migrations.AlterField(
            model_name="provider",
            name="base_url",
            field=models.CharField(max_length=300),
        ),
    ]
