"""Loads the workflows, and refuses misspelt failpoints, when Django is ready."""

from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings


class WorkflowsConfig(AppConfig):
    name = "workflows"
    verbose_name = "Workflows"

    def ready(self) -> None:
        from workflows import failpoints, registry, worker  # noqa: F401 (worker: its signals)

        failpoints.check_names(settings.ROMULUS_FAILPOINTS)
        registry.load(settings.ROMULUS_WORKFLOWS)
