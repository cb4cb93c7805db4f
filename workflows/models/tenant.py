"""Whose runs these are. Nothing of one tenant is shown to people of another."""

from __future__ import annotations

from django.db import models

from workflows.models.ids import new_id


class Tenant(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=200)

    class Meta:
        permissions = [
            ("view_payloads", "Can see inputs, outputs and what was sent"),
            ("control_runs", "Can cancel, pause and resume runs"),
            ("configure", "Can set it up"),
        ]

    def __str__(self) -> str:
        return self.name
