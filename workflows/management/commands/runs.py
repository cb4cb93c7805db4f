"""`manage.py runs`: the runs, newest first."""

from __future__ import annotations

import argparse

from workflows.core.states import RunState
from workflows.management.base import ConsoleCommand, an_id, positive
from workflows.models import Run
from workflows.selectors.run_document import run_line

LIMIT = 50


class Command(ConsoleCommand):
    help = "List runs, newest first: one a line, or their IDs alone."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--state", choices=[state.value for state in RunState])
        parser.add_argument("--workflow")
        parser.add_argument("--tenant", help="slug")
        parser.add_argument(
            "--with-children", action="store_true", help="also those that other runs started"
        )
        parser.add_argument("--parent", type=an_id, help="only those that this run started")
        parser.add_argument("--before", type=an_id, help="only those older than this run")
        parser.add_argument("--limit", type=positive, default=LIMIT)
        parser.add_argument("--ids", action="store_true", help="IDs alone, one a line")

    def perform(self, given: argparse.Namespace) -> None:
        asked = {
            "state": given.state,
            "workflow": given.workflow,
            "tenant__slug": given.tenant,
            "pk__lt": given.before,
            "parent": given.parent,
        }
        wanted = {name: value for name, value in asked.items() if value is not None}
        runs = Run.objects.filter(**wanted).select_related("tenant").order_by("-pk")
        if given.parent is None and not given.with_children:
            runs = runs.filter(parent=None)
        rows = list(runs[: given.limit])
        self.answer(given, [run_line(run) for run in rows], [line(run, given.ids) for run in rows])


def line(run: Run, only_id: bool) -> str:
    if only_id:
        return str(run.pk)
    stop = ""
    if not RunState(run.state).is_final:
        stop = "  paused" if run.paused_at else ""
        stop = "  cancel asked" if run.cancel_asked_at else stop
    named = f"{run.tenant.slug}  {run.workflow} v{run.version}  {run.step}"
    return f"{run.pk}  {run.state:<10} {named}{stop}"
