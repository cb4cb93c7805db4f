"""What people do while the blows fall, and what they were told: checks hold it against the rows.

A person who decides about an operation has looked at the destination: that is what `truth` is.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import QuerySet

from reconciliation.core.facts import Dispatch
from reconciliation.core.states import DecisionKind, HoldState
from reconciliation.models import Hold, Operation
from romulus_site.torture.clerk import Clerk
from romulus_site.torture.plan import Errand, PlannedErrand, PlannedRun
from romulus_site.torture.scene import PERSONALITIES, Scene

# What the comparison of two clocks may be wrong by.
GRAIN = timedelta(milliseconds=50)

Later = Callable[[float, Callable[[], None]], None]
"""Do something after so many seconds."""


@dataclass(frozen=True)
class Cancellation:
    """Somebody was told `outcome` about the end of `run`, by `at`."""

    run: UUID
    outcome: str  # cancelled, asked, or over: it had ended before
    at: datetime


@dataclass
class Pause:
    """Between the two times nothing of `what` may begin: a run, a workflow or a provider."""

    kind: Errand
    what: str
    since: datetime
    until: datetime | None = None


class Errands:
    """Runs people's errands, and remembers what they were told."""

    def __init__(self, scene: Scene, clerk: Clerk, started: dict[int, UUID], later: Later) -> None:
        self._scene, self._clerk, self._started, self._later = scene, clerk, started, later
        self.cancellations: list[Cancellation] = []
        self.pauses: list[Pause] = []
        self._kinds: dict[Errand, Callable[[PlannedErrand, PlannedRun], str]] = {
            Errand.CANCEL: self._cancel,
            Errand.PAUSE: self._pause,
            Errand.PAUSE_ALL: self._pause_all,
            Errand.SWITCH: self._switch,
            Errand.DECIDE: self._decide_eldest,
            Errand.ASK: self._ask,
            Errand.PURGE: self._purge,
        }

    def run(self, errand: PlannedErrand, subject: PlannedRun) -> str:
        """Do it; return what came of it, in a few words."""
        return self._kinds[errand.kind](errand, subject)

    def _cancel(self, _: PlannedErrand, subject: PlannedRun) -> str:
        run = self._started.get(subject.number)
        if run is None:
            return "it was not started yet"
        told = self._clerk.ask("cancel", run=str(run))
        at = datetime.fromisoformat(told["at"])
        self.cancellations.append(Cancellation(run, told["outcome"], at))
        return f"run {subject.number}: {told['outcome']}"

    # --- pausing ----------------------------------------------------------------------------

    def _pause(self, errand: PlannedErrand, subject: PlannedRun) -> str:
        run = self._started.get(subject.number)
        if run is None:
            return "it was not started yet"
        told = self._clerk.ask("pause", run=str(run))
        if told["outcome"] == "over":
            return f"run {subject.number} is over"
        self._until(errand, str(run), told["at"], lambda: self._clerk.ask("resume", run=str(run)))
        return f"run {subject.number} was paused for {errand.seconds:.1f} s"

    def _pause_all(self, errand: PlannedErrand, subject: PlannedRun) -> str:
        workflow = subject.workflow
        if self._is_paused(Errand.PAUSE_ALL, workflow):
            return f"{workflow} is paused already"
        told = self._clerk.ask("halt", workflow=workflow)
        self._until(
            errand, workflow, told["at"], lambda: self._clerk.ask("unhalt", workflow=workflow)
        )
        return f"{workflow} was paused for {errand.seconds:.1f} s"

    def _switch(self, errand: PlannedErrand, subject: PlannedRun) -> str:
        provider = f"torture-{PERSONALITIES[subject.number % len(PERSONALITIES)]}"
        if self._is_paused(Errand.SWITCH, provider):
            return f"dispatch to {provider} is paused already"
        told = self._clerk.ask("switch", provider=provider, state=Dispatch.PAUSED)
        self._until(
            errand,
            provider,
            told["at"],
            lambda: self._clerk.ask("switch", provider=provider, state=Dispatch.ON),
        )
        return f"dispatch to {provider} was paused for {errand.seconds:.1f} s"

    def _is_paused(self, kind: Errand, what: str) -> bool:
        return any(p.until is None and (p.kind, p.what) == (kind, what) for p in self.pauses)

    def _until(
        self,
        errand: PlannedErrand,
        what: str,
        since: str,
        go_on: Callable[[], object],
    ) -> None:
        pause = Pause(errand.kind, what, datetime.fromisoformat(since))
        self.pauses.append(pause)

        def over() -> None:
            # From before it was asked for at all: a clerk that dies over it has done it already.
            pause.until = self._scene.clock.now() - GRAIN
            go_on()

        self._later(errand.seconds, over)

    # --- deciding and purging ---------------------------------------------------------------

    def _decide_eldest(self, _: PlannedErrand, __: PlannedRun) -> str:
        hold = open_holds().first()
        return self.decide(hold) if hold else "nothing is held"

    def decide(self, hold: Hold) -> str:
        """Decide as somebody would who can see the destination."""
        kind, resource = self._truth(hold.operation)
        told = self._clerk.ask(
            "decide",
            hold=str(hold.pk),
            version=hold.version,
            kind=kind,
            token=str(uuid.uuid4()),
            resource=resource,
        )
        return f"{hold.reason}: {kind}, {told['outcome']} {told.get('why', '')}".rstrip()

    def _truth(self, operation: Operation | None) -> tuple[DecisionKind, str]:
        if operation is None:
            return DecisionKind.TRY_AGAIN, ""
        effects = self._scene.destination.at_hand.effects(operation=str(operation.pk))
        if effects:
            return DecisionKind.APPLIED, effects[0].resource_id
        return DecisionKind.ABANDON, ""

    def _ask(self, _: PlannedErrand, __: PlannedRun) -> str:
        hold = open_holds().filter(operation__provider__slug="torture-lookup").first()
        if hold is None:
            return "nothing is held that can be looked up"
        told = self._clerk.ask("ask", operation=str(hold.operation_id))
        return f"operation {hold.operation_id}: {told['outcome']}"

    def _purge(self, _: PlannedErrand, __: PlannedRun) -> str:
        return f"{self._clerk.ask('purge')['outputs']} outputs were purged"


def open_holds() -> QuerySet[Hold]:
    """Of runs: what is held of an event is not decided, but attached or dismissed."""
    holds = Hold.objects.filter(state=HoldState.OPEN, run__isnull=False)
    return holds.select_related("operation").order_by("pk")
