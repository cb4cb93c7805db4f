"""Everything that is on record after a torture, read once: the rows, the destination, the traces.

The checks read this and nothing else, so that each can be shown what is not right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import connection

from reconciliation.core.contracts import Contract, parse_contract
from reconciliation.models import (
    ContractVersion,
    Decision,
    Evidence,
    Hold,
    Operation,
    Provider,
    Transmission,
)
from reconciliation.rehearsal.client import Destination, Effect, JournalEntry
from reconciliation.services.audit import first_broken_entry
from romulus_site.torture.flows import MARKS, journal_of
from romulus_site.torture.logs import Trouble, troubles_in
from romulus_site.torture.plan import Plan, PlannedRun
from romulus_site.torture.player import Performance
from romulus_site.torture.scene import VERSION
from workflows.core.values import Json
from workflows.models import Attempt, Event, Match, Run, Wait, Worker
from workflows.services.outputs import read_output

Row = TypeVar("Row")


@dataclass(frozen=True)
class Mark:
    """A row that an atomic step wrote."""

    run: UUID
    step: str
    visit: int
    attempt: UUID


@dataclass(frozen=True)
class Unreadable:
    """An output that is not there, or is not what was written."""

    why: str


@dataclass
class Record:
    """What is known after a torture.

    Attributes:
        attempts: all, in the order of their runs' fences.
        outputs: by attempt, what each has left, as plain JSON; none of those that were purged.
        lines: of the side journal, each a word and an attempt.
        broken_entry: the first entry of the audit record that does not fit, if one does not.
    """

    plan: Plan
    performance: Performance
    runs: Sequence[Run] = ()
    attempts: Sequence[Attempt] = ()
    outputs: Mapping[UUID, Json | Unreadable] = field(default_factory=dict)
    workers: Mapping[UUID, int] = field(default_factory=dict)  # their process IDs
    providers: Mapping[UUID, str] = field(default_factory=dict)  # personalities
    contracts: Mapping[UUID, Contract] = field(default_factory=dict)  # by their version's row
    operations: Sequence[Operation] = ()
    transmissions: Sequence[Transmission] = ()
    evidence: Sequence[Evidence] = ()
    holds: Sequence[Hold] = ()
    decisions: Sequence[Decision] = ()
    waits: Sequence[Wait] = ()
    events: Sequence[Event] = ()
    matches: Sequence[Match] = ()
    marks: Sequence[Mark] = ()
    lines: Sequence[tuple[str, str]] = ()
    journal: Sequence[JournalEntry] = ()
    effects: Sequence[Effect] = ()
    broken_entry: int | None = None
    troubles: Sequence[Trouble] = ()

    # --- found by what they belong to -------------------------------------------------------

    @cached_property
    def run_of(self) -> dict[UUID, Run]:
        return {run.pk: run for run in self.runs}

    @cached_property
    def planned(self) -> dict[UUID, PlannedRun]:
        """What was planned, by the run that it became."""
        started = self.performance.started
        return {started[run.number]: run for run in self.plan.runs if run.number in started}

    @cached_property
    def children_of(self) -> dict[UUID, list[Run]]:
        return grouped((run.parent_id, run) for run in self.runs if run.parent_id)

    @cached_property
    def attempts_of(self) -> dict[UUID, list[Attempt]]:
        return grouped((attempt.run_id, attempt) for attempt in self.attempts)

    @cached_property
    def attempt_of(self) -> dict[UUID, Attempt]:
        return {attempt.pk: attempt for attempt in self.attempts}

    @cached_property
    def operations_of(self) -> dict[UUID, list[Operation]]:
        return grouped((operation.run_id, operation) for operation in self.operations)

    @cached_property
    def transmissions_of(self) -> dict[UUID, list[Transmission]]:
        return grouped((row.operation_id, row) for row in self.transmissions)

    @cached_property
    def evidence_of(self) -> dict[UUID, list[Evidence]]:
        return grouped((row.operation_id, row) for row in self.evidence)

    @cached_property
    def holds_of(self) -> dict[UUID, list[Hold]]:
        return grouped((hold.run_id, hold) for hold in self.holds if hold.run_id is not None)

    @cached_property
    def waits_of(self) -> dict[UUID, list[Wait]]:
        return grouped((wait.run_id, wait) for wait in self.waits)

    @cached_property
    def events_of(self) -> dict[str, list[Event]]:
        """By the correlation that a wait is for."""
        return grouped((event.correlation, event) for event in self.events)

    @cached_property
    def got_by(self) -> dict[UUID, list[Event]]:
        """The events that each wait got."""
        event_of = {event.pk: event for event in self.events}
        return grouped((match.wait_id, event_of[match.event_id]) for match in self.matches)

    @cached_property
    def effects_of(self) -> dict[str, list[Effect]]:
        """The destination's effects, by what their sender called the operation."""
        return grouped((effect.operation or "", effect) for effect in self.effects)

    @cached_property
    def posts_of(self) -> dict[str, list[JournalEntry]]:
        """The writes that arrived at the destination, by the transmission that they name."""
        return grouped((e.attempt or "", e) for e in self.journal if e.method == "POST")

    def personality_of(self, operation: Operation) -> str:
        return self.providers[operation.provider_id]

    def name(self, run: Run | UUID | None) -> str:
        """Return how a run is named in a breach."""
        if not isinstance(run, Run):
            found = self.run_of.get(run) if run else None
            if found is None:
                return f"run {run}, which does not exist,"
            run = found
        planned = self.planned.get(run.pk)
        number = f"no. {planned.number}" if planned else f"child of {run.parent_id}"
        return f"run {run.pk} ({run.workflow}, {number})"


def grouped(pairs: Iterable[tuple[Any, Row]]) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for key, row in pairs:
        groups[key].append(row)
    return groups


# --- reading it -------------------------------------------------------------------------------


def read_record(
    plan: Plan, performance: Performance, destination: Destination, logs: Path
) -> Record:
    attempts = list(Attempt.objects.order_by("run_id", "fence"))
    return Record(
        plan=plan,
        performance=performance,
        runs=list(Run.objects.order_by("pk")),
        attempts=attempts,
        outputs=dict(outputs_of(attempts)),
        workers=dict(Worker.objects.values_list("pk", "pid")),
        providers={
            pk: slug.removeprefix("torture-")
            for pk, slug in Provider.objects.values_list("pk", "slug")
        },
        contracts={
            version.pk: parse_contract(version.document, str(version))
            for version in ContractVersion.objects.filter(version=VERSION)
        },
        operations=list(Operation.objects.order_by("pk")),
        transmissions=list(Transmission.objects.order_by("operation_id", "number")),
        evidence=list(Evidence.objects.order_by("operation_id", "recorded_at")),
        holds=list(Hold.objects.order_by("pk")),
        decisions=list(Decision.objects.order_by("pk")),
        waits=list(Wait.objects.order_by("pk")),
        events=list(Event.objects.order_by("pk")),
        matches=list(Match.objects.order_by("pk")),
        marks=read_marks(),
        lines=read_lines(journal_of(settings.ROMULUS_DATA)),
        journal=destination.journal(),
        effects=destination.effects(),
        broken_entry=first_broken_entry(),
        troubles=troubles_in(logs),
    )


def outputs_of(attempts: Sequence[Attempt]) -> Iterable[tuple[UUID, Json | Unreadable]]:
    for attempt in attempts:
        if attempt.output_form is None or attempt.purged_at is not None:
            continue
        try:
            yield attempt.pk, read_output(attempt)
        except Exception as error:  # noqa: BLE001 (whatever keeps it from being read is the finding)
            yield attempt.pk, Unreadable(str(error))


def read_marks() -> list[Mark]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT run, step, visit, attempt FROM {MARKS}")  # noqa: S608
        return [Mark(*row) for row in cursor.fetchall()]


def read_lines(journal: Path) -> list[tuple[str, str]]:
    if not journal.exists():
        return []
    pairs = (line.split(" ", 1) for line in journal.read_text().splitlines())
    return [(pair[0], pair[-1]) for pair in pairs]
