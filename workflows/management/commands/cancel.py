"""`manage.py cancel`: end runs and what they wait for; what is open elsewhere is settled first."""

from __future__ import annotations

import argparse

from workflows.core.controls import Control
from workflows.management.base import ConsoleCommand, an_id
from workflows.management.stopping import control_runs, wish_arguments


class Command(ConsoleCommand):
    help = (
        "Cancel runs and the runs that they wait for. A write whose outcome is open is settled "
        "first; the run ends then. Nothing that was done is undone."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("runs", nargs="+", type=an_id, metavar="RUN", help="IDs of runs")
        wish_arguments(parser)

    def perform(self, given: argparse.Namespace) -> None:
        control_runs(self, given, Control.CANCEL)
