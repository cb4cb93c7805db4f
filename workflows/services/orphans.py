"""Objects in the storage of outputs that nobody refers to, and their end.

A worker that dies between writing an object and committing its reference leaves one. It cannot be
told from one whose commit is under way but by its age: younger ones are left alone. So is what
belongs to no run that the database knows, such as the objects of another installation, or of runs
that a restored backup does not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from itertools import islice
from uuid import UUID

import structlog

from workflows import storage
from workflows.core.errors import OutputsAway
from workflows.core.states import OutputForm
from workflows.models import Attempt, Run
from workflows.services.clock import database_now

log = structlog.get_logger(__name__)

BATCH = 100  # runs whose references are looked up together


@dataclass(frozen=True)
class Collected:
    """What an orphan collection did, or would do."""

    objects: int = 0
    bytes: int = 0
    young: int = 0  # too young to be told from those whose commit is under way
    failed: int = 0  # the storage did not delete them
    unknown: int = 0  # folders of runs that the database does not have

    def __add__(self, other: Collected) -> Collected:
        return Collected(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


def collect_orphans(older_than: timedelta, *, dry_run: bool = False) -> Collected:
    """Delete the objects that nothing refers to and that are older than `older_than`.

    The whole storage is walked, a shelf of runs in memory at a time. Any number of collections may
    run at once.

    Raises:
        OutputsAway: the storage does not list what it has.
    """
    # The one comparison with another clock, the storage's: a grace period is far longer than any
    # difference between two clocks.
    before = database_now() - older_than
    pages = batched(storage.runs_with_objects(), BATCH)
    return sum((collect(runs, before, dry_run=dry_run) for runs in pages), Collected())


def batched(runs: Iterable[UUID], size: int) -> Iterator[list[UUID]]:
    each = iter(runs)
    while page := list(islice(each, size)):
        yield page


def collect(runs: list[UUID], before: datetime, *, dry_run: bool) -> Collected:
    ends = dict(Run.objects.filter(pk__in=runs).values_list("pk", "finished_at"))
    objects = {run: storage.objects_of(run) for run in ends}
    # Asked after the listing: what is committed meanwhile has a reference by now.
    kept = referred(list(ends))
    total = Collected(unknown=len(runs) - len(ends))
    for run, names in objects.items():
        for name in names - kept:
            total += collect_one(name, before, dry_run=dry_run)
        if ends[run] and not dry_run:  # a run that goes on may be about to write
            storage.remove_folder(run)
    return total


def referred(runs: list[UUID]) -> set[str]:
    """The objects that are referred to. That of a purged output is not: it should be gone."""
    outputs = Attempt.objects.filter(
        run__in=runs, output_form=OutputForm.OBJECT, purged_at__isnull=True
    )
    return set(outputs.values_list("output__object", flat=True))


def collect_one(name: str, before: datetime, *, dry_run: bool) -> Collected:
    written_at = storage.modified_at(name)
    if written_at is None:  # somebody else has deleted it
        return Collected()
    if written_at > before:
        return Collected(young=1)
    size = storage.size(name)
    if not dry_run:
        try:
            storage.delete(name)
        except OutputsAway:
            log.exception("orphan.failed", object=name)
            return Collected(failed=1)
        log.info("orphan.collected", object=name)
    return Collected(objects=1, bytes=size)
