"""`manage.py pause`: let runs, a workflow or a tenant stop at the next step."""

from __future__ import annotations

import argparse

from workflows.core.controls import Control
from workflows.management.base import ConsoleCommand, WrongUse
from workflows.management.stopping import (
    as_json,
    check_scope,
    control_runs,
    line_of,
    scope_arguments,
    tenant_of,
    wish_arguments,
    workflow_of,
)
from workflows.models import Pause
from workflows.services.stopping import pause_all


class Command(ConsoleCommand):
    help = (
        "Pause runs, or every run of a workflow, a tenant or a workflow for one tenant. A step "
        "that is under way is finished; waits, look-ups, holds and decisions go on."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        scope_arguments(parser)
        wish_arguments(parser)

    def perform(self, given: argparse.Namespace) -> None:
        if not check_scope(given):
            control_runs(self, given, Control.PAUSE)
            return
        if not given.reason:
            raise WrongUse("--reason: say why, for those who will wonder")
        workflow, tenant = workflow_of(given.workflow), tenant_of(given.tenant)
        before = Pause.objects.filter(workflow=workflow, tenant=tenant).exists()
        pause = pause_all(by=given.by, reason=given.reason, workflow=workflow, tenant=tenant)
        said = "Paused already" if before else "Paused"
        self.answer(given, as_json(pause, changed=not before), [f"{said}: {line_of(pause)}"])
