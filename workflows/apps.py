"""Loads the workflows, and refuses misspelt failpoints, when Django is ready."""

from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings


class WorkflowsConfig(AppConfig):
    name = "workflows"
    verbose_name = "Runs and events"

    def ready(self) -> None:
        from workflows import failpoints, registry, worker  # noqa: F401 (worker: its signals)
        from workflows.services.branch_step import execute_branch
        from workflows.services.children_step import execute_children, execute_parallel
        from workflows.services.kinds import register_kind
        from workflows.services.sleep_step import execute_sleep
        from workflows.services.wait_step import execute_wait

        register_kind("branch", execute_branch)
        register_kind("sleep", execute_sleep)
        register_kind("wait", execute_wait)
        register_kind("children", execute_children)
        register_kind("parallel", execute_parallel)

        failpoints.check_names(settings.ROMULUS_FAILPOINTS)
        registry.load(settings.ROMULUS_WORKFLOWS)
