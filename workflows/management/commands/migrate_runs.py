"""`manage.py migrate_runs`: move unfinished runs to a later version of their workflow.

The command needs the later version alone (`ROMULUS_WORKFLOWS`), as a new deployment has it. It may
be broken off and run again at any time: each run moves by itself, or not at all.
"""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Iterator
from itertools import islice
from typing import Any

from django.db.models import QuerySet

from workflows.core.definitions import Workflow
from workflows.core.outcomes import Moving, Staying, Tally
from workflows.management.base import ConsoleCommand, Refused, WrongUse, an_id, positive
from workflows.models import Run, Tenant
from workflows.registry import registry
from workflows.selectors.words import counted
from workflows.services.migration_plans import earlier
from workflows.services.migrations import check_earlier, migrating

PROGRESS = 500  # runs between two lines of progress
EXAMPLES = 3  # of the runs that stay for one reason, in lines; --json has them all


class Command(ConsoleCommand):
    help = (
        "Move unfinished runs to a later version of their workflow, as its migrates(…) says. Ends "
        "with 1 when some stay; each is given with the reason and what helps."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("workflow")
        parser.add_argument(
            "--from", dest="from_version", type=positive, help="only runs of this version"
        )
        parser.add_argument(
            "--to", dest="to_version", type=positive, help="the latest that is here by default"
        )
        parser.add_argument("--run", type=an_id, help="this run alone")
        parser.add_argument("--tenant", help="slug; only runs of this tenant")
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="change nothing and say what would move; outputs are converted all the same, so "
            "that what does not fit is seen",
        )
        parser.add_argument("--limit", type=positive, help="look at so many runs at most")
        parser.add_argument("--by", metavar="NAME", help="who moves them, for the record")

    def perform(self, given: argparse.Namespace) -> None:
        into = target_of(given)
        runs = chosen(given, into)
        there = earlier(runs, into).count()
        wanted = there if given.limit is None else min(given.limit, there)
        tally = self.migrate(given, runs, into, wanted)
        self.answer(given, document(given, into, tally, there), lines(given, into, tally, there))
        if tally.stayed:
            raise Refused(f"{counted(tally.stayed, 'run')} of {tally.looked_at:,} {stay(tally)}.")

    def migrate(
        self, given: argparse.Namespace, runs: QuerySet[Run], into: Workflow, wanted: int
    ) -> Tally:
        tally = Tally()
        by = f"command:{given.by or whoever()}"
        outcomes = migrating(runs, into, by=by, dry_run=given.dry_run)
        for outcome in islice(outcomes, given.limit):
            tally.add(outcome)
            if tally.looked_at % PROGRESS == 0:
                self.stderr.write(f"{tally.looked_at:,} of {wanted:,} runs looked at …")
        return tally


def whoever() -> str:
    """The name of the account that the command runs under; a container may have none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"


# --- which runs -------------------------------------------------------------------------------


def target_of(given: argparse.Namespace) -> Workflow:
    """The version to move to; raises `UnknownWorkflow` when it is not here."""
    if given.to_version is None:
        into = registry.latest(given.workflow)
    else:
        into = registry.get(given.workflow, given.to_version)
    if given.from_version is not None and given.from_version >= into.version:
        raise WrongUse(
            f"--from {given.from_version}: runs move to later versions only, and version "
            f"{into.version} is the one they would move to"
        )
    return into


def chosen(given: argparse.Namespace, into: Workflow) -> QuerySet[Run]:
    runs = Run.objects.filter(workflow=into.name)
    if given.tenant is not None:
        if not Tenant.objects.filter(slug=given.tenant).exists():
            raise Refused(f"there is no tenant {given.tenant!r}")
        runs = runs.filter(tenant__slug=given.tenant)
    if given.from_version is not None:
        runs = runs.filter(version=given.from_version)
    if given.run is not None:
        runs = runs.filter(pk=given.run)
        run = runs.first()
        if run is None:
            raise Refused(f"there is no run {given.run} of {into.name} that is asked for")
        check_earlier(run, into)
    return runs


# --- the answer -------------------------------------------------------------------------------


def document(given: argparse.Namespace, into: Workflow, tally: Tally, there: int) -> dict[str, Any]:
    return {
        "workflow": into.name,
        "to_version": into.version,
        "dry_run": given.dry_run,
        "runs": there,
        "looked_at": tally.looked_at,
        "moved": [moving(group) for group in tally.moving.values()],
        "stayed": [staying(group) for group in tally.staying.values()],
    }


def moving(group: Moving) -> dict[str, Any]:
    return {
        "from_version": group.version,
        "from_step": group.step,
        "to_step": group.to_step,
        "count": len(group.runs),
        "runs": group.runs,
    }


def staying(group: Staying) -> dict[str, Any]:
    return {
        "from_version": group.version,
        "from_step": group.step,
        "reason": group.why.reason,
        "message": group.why.message,
        "helps": group.why.helps,
        "count": len(group.runs),
        "runs": [{"id": run, "about": about} for run, about in group.runs.items()],
    }


def lines(given: argparse.Namespace, into: Workflow, tally: Tally, there: int) -> Iterator[str]:
    if not there:
        yield f"No unfinished run of {into.name} is of a version before {into.version}."
        return
    would = "It would be: " if given.dry_run else ""
    yield (
        f"{would}{tally.moved:,} of {counted(tally.looked_at, 'run')} of {into.name} moved to "
        f"version {into.version}"
    )
    for group in tally.moving.values():
        yield (
            f"  from version {group.version}, {group.step} -> {group.to_step}: "
            f"{counted(len(group.runs), 'run')}"
        )
    for stays in tally.staying.values():
        yield (
            f"  stay under version {stays.version} at {stays.step}: "
            f"{counted(len(stays.runs), 'run')}. {stays.why.message}"
        )
        yield f"    Helps: {stays.why.helps}"
        for run, about in islice(stays.runs.items(), EXAMPLES):
            yield f"    {run}{f'  {about}' if about else ''}"
        if len(stays.runs) > EXAMPLES:
            yield f"    and {len(stays.runs) - EXAMPLES:,} more; --json names them all"
    if given.limit is not None and tally.looked_at == given.limit < there:
        yield f"Not looked at: {counted(there - tally.looked_at, 'run')}"


def stay(tally: Tally) -> str:
    return "stays" if tally.stayed == 1 else "stay"
