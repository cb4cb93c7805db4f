"""`manage.py bench`: how fast this is, beside the most that this very database allows.

What is measured, and how, is in `romulus_site.bench`; progress goes to standard error.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from romulus_site.bench import (
    ceiling,
    console,
    events,
    history,
    latency,
    operations,
    recovery,
    start,
    steps,
)
from romulus_site.bench.database import NoDatabase
from romulus_site.bench.talk import ChildFailed
from romulus_site.bench.walkers import NotDone
from romulus_site.bench.workers import Silence
from romulus_site.embedded import EmbeddedError
from workflows.management.base import ConsoleCommand, Refused

MEASUREMENTS: dict[str, ModuleType] = {
    "steps": steps,
    "ceiling": ceiling,
    "latency": latency,
    "events": events,
    "history": history,
    "start": start,
    "recovery": recovery,
    "operations": operations,
    "console": console,
}
DEFAULT = "steps"
FAILURES = (NoDatabase, ChildFailed, NotDone, Silence, EmbeddedError)
TERMINATED = 128 + signal.SIGTERM


@contextmanager
def ended_in_order() -> Iterator[None]:
    """On SIGTERM drop what was made, as on Ctrl-C, and end."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Command(ConsoleCommand):
    help = "Measure throughput, latency and recovery; without a name: steps."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="measurement", metavar="MEASUREMENT")
        for name, measurement in MEASUREMENTS.items():
            command = commands.add_parser(
                name, help=measurement.HELP, description=measurement.__doc__
            )
            measurement.add_arguments(command)
            super().add_arguments(command)
        self.default = commands.choices[DEFAULT]

    def perform(self, given: argparse.Namespace) -> None:
        if given.measurement is None:
            given = self.default.parse_args([], argparse.Namespace(measurement=DEFAULT))
        measurement = MEASUREMENTS[given.measurement]
        self.began = time.monotonic()
        self.say(f"bench {given.measurement}")
        try:
            with ended_in_order():
                document: dict[str, Any] = measurement.measure(given, self.say)
        except FAILURES as error:
            raise Refused(str(error)) from error
        self.answer(given, document, measurement.lines(document))

    def say(self, what: str) -> None:
        """Tell what is measured now, with the seconds since the beginning."""
        seconds = time.monotonic() - self.began
        self.stderr.write(f"{seconds:6.1f} s  {what}", style_func=str)
        self.stderr.flush()
