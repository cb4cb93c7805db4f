"""`manage.py explain`: why a run is not finished, what would move it, and who owns it."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from workflows.management.base import ConsoleCommand, Refused, an_id
from workflows.models import Run
from workflows.selectors import explain_run
from workflows.selectors.run_parts import run_parts


class Command(ConsoleCommand):
    help = "Say why a run is where it is: one sentence, what would move it, who owns it."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("run", type=an_id, help="its ID")

    def perform(self, given: argparse.Namespace) -> None:
        run = Run.objects.filter(pk=given.run).first()
        if run is None:
            raise Refused(f"there is no run {given.run}")
        parts = run_parts(run, None)
        why = explain_run(run, owner=parts.owner)
        helps = parts.helps or why.moves
        document = asdict(why) | {"moves": helps, "id": run.pk, "state": run.state}
        lines = [why.sentence, f"Helps: {helps}"]
        self.answer(given, document, [*lines, f"Owner: {why.owner}"] if why.owner else lines)
