"""`manage.py purge`: what workers do by themselves each minute, at once and with an account."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.conf import settings

from workflows.management.base import ConsoleCommand, Refused
from workflows.services.event_purge import PurgedEvents, purging_events
from workflows.services.orphans import Collected, collect_orphans
from workflows.services.purge import AGAIN, Purged, left_alone, purging

PROGRESS = 500  # runs between two lines of progress


class Command(ConsoleCommand):
    help = "Purge outputs, inputs and bodies of events whose retention has passed; collect orphans."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--dry-run", action="store_true", help="change nothing, say what would")
        parser.add_argument(
            "--orphans", action="store_true", help="also objects in the storage nobody refers to"
        )

    def perform(self, given: argparse.Namespace) -> None:
        purged = self.purge(given.dry_run)
        events = sum(purging_events(dry_run=given.dry_run), PurgedEvents())
        collected = collect(given.dry_run) if given.orphans else None
        alone = left_alone()
        document = {
            "dry_run": given.dry_run,
            "purged": asdict(purged),
            "events": asdict(events),
            "orphans": asdict(collected) if collected else None,
            "left_alone": alone,
        }
        self.answer(given, document, lines(given.dry_run, purged, events, collected, alone))
        refuse_failures(purged, collected)

    def purge(self, dry_run: bool) -> Purged:
        total = Purged()
        for number, purged in enumerate(purging(dry_run=dry_run), start=1):
            total += purged
            if number % PROGRESS == 0:
                self.stderr.write(f"{number:,} runs looked at, {amount(total.bytes)} so far …")
        return total


def collect(dry_run: bool) -> Collected:
    return collect_orphans(timedelta(seconds=settings.ROMULUS_ORPHAN_SECONDS), dry_run=dry_run)


def lines(
    dry_run: bool,
    purged: Purged,
    events: PurgedEvents,
    collected: Collected | None,
    alone: list[dict[str, Any]],
) -> Iterator[str]:
    would = "It would be: " if dry_run else ""
    yield (
        f"{would}{purged.runs:,} runs purged: {purged.outputs:,} outputs, {purged.inputs:,} inputs,"
        f" {purged.objects:,} objects, {amount(purged.bytes)}"
    )
    if events.events:
        yield (
            f"{would}{events.events:,} bodies of events purged, {amount(events.bytes)}; of these "
            f"{events.dismissed:,} events that nobody took"
        )
    if collected:
        yield (
            f"{would}{collected.objects:,} orphans collected, {amount(collected.bytes)}; "
            f"{collected.young:,} are too young to tell"
        )
        if collected.unknown:
            yield f"Left alone: {collected.unknown:,} folders of runs that this database lacks"
    for each in alone:
        yield (
            f"Left alone: {each['runs']:,} runs of {each['workflow']} version {each['version']}, "
            "which ROMULUS_WORKFLOWS does not have"
        )


def amount(size: int) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":  # noqa: PLR2004 (of one unit in the next)
            break
        size //= 1024
    return f"{size:,} {unit}"


def refuse_failures(purged: Purged, collected: Collected | None) -> None:
    if purged.failed:
        hours = AGAIN // timedelta(hours=1)
        raise Refused(
            f"The storage did not delete the objects of {purged.failed:,} runs; their outputs are "
            f"purged, and the objects are tried again in {hours} h. The log says why."
        )
    if collected and collected.failed:
        raise Refused(f"The storage did not delete {collected.failed:,} orphans; the log says why.")
