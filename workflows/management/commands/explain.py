"""`manage.py explain`: why a run is not finished, what would move it, and who owns it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from workflows.core.explain import Explanation
from workflows.management.base import ConsoleCommand, Refused, an_id
from workflows.models import Run
from workflows.selectors import explain_run
from workflows.selectors.run_parts import run_parts


class Command(ConsoleCommand):
    help = "Say why a run is where it is, what would move it, who owns it, and by which facts."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("run", type=an_id, help="its ID")

    def perform(self, given: argparse.Namespace) -> None:
        run = Run.objects.filter(pk=given.run).first()
        if run is None:
            raise Refused(f"there is no run {given.run}")
        why = explain_run(run, run_parts(run, None))
        document = asdict(why) | {"id": run.pk, "state": run.state}
        document["facts"] = plain(why.facts)
        self.answer(given, document, lines(why))


def lines(why: Explanation) -> Iterator[str]:
    yield why.sentence
    yield f"Helps: {why.moves}"
    if why.owner:
        yield f"Owner: {why.owner}"
    yield "Facts:"
    for name, value in plain(why.facts).items():
        if value not in (None, "", []):
            yield f"  {name.replace('_', ' ')}: {text_of(value)}"


def plain(value: Any) -> Any:
    """The facts as JSON has them: times with their zone."""
    match value:
        case datetime():
            return value.isoformat()
        case Mapping():
            return {name: plain(part) for name, part in value.items()}
        case list() | tuple():
            return [plain(part) for part in value]
        case _:
            return value


def text_of(value: Any) -> str:
    match value:
        case Mapping():
            return ", ".join(f"{name} {text_of(part)}" for name, part in value.items() if part)
        case list():
            return "; ".join(map(text_of, value))
        case _:
            return str(value)
