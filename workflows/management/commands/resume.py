"""`manage.py resume`: let what was paused go on."""

from __future__ import annotations

import argparse

from workflows.core.controls import Control
from workflows.management.base import ConsoleCommand
from workflows.management.stopping import (
    check_scope,
    control_runs,
    listed,
    name_of,
    scope_arguments,
    tenant_of,
    wish_arguments,
    workflow_of,
)
from workflows.models import Pause
from workflows.services.stopping import resume_all


class Command(ConsoleCommand):
    help = (
        "Resume paused runs, or take back exactly one pause of a workflow, a tenant or a workflow "
        "for one tenant. Other pauses of the same runs stay."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        scope_arguments(parser)
        wish_arguments(parser)

    def perform(self, given: argparse.Namespace) -> None:
        if not check_scope(given):
            control_runs(self, given, Control.RESUME)
            return
        workflow, tenant = workflow_of(given.workflow), tenant_of(given.tenant)
        changed = resume_all(by=given.by, reason=given.reason, workflow=workflow, tenant=tenant)
        name = name_of(workflow, tenant)
        document = {
            "workflow": workflow,
            "tenant": tenant.slug if tenant else None,
            "by": given.by,
            "changed": changed,
        }
        said = f"Resumed: {name}"
        if not changed:
            others = listed(Pause.objects.select_related("tenant"))
            said = f"There is no pause of {name}. There are: {others}"
        self.answer(given, document, [said])
