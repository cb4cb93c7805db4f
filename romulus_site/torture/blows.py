"""The blows: each a few lines that strike something, and note when.

What is struck is only what this torture has started: its workers, its clerk, its destination, its
database, its queues.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from uuid import UUID

from django.conf import settings

from romulus_site.torture import broker, scene
from romulus_site.torture.clerk import Clerk
from romulus_site.torture.flows import stands_no_more
from romulus_site.torture.plan import Blow, Kind
from romulus_site.torture.scene import Scene
from romulus_site.torture.strikes import Strike
from romulus_site.torture.workers import Staff, WorkerProcess
from workflows.core.states import RunState
from workflows.models import Run, Worker
from workflows.services import hints

# Of workers that wait for their failpoint, at a time.
MOST_DOOMED = 2
# Messages of one flood, for runs that are over, do not exist, or are at work.
FLOOD = 40
LOOK_UPS_PER_SECOND = 4


class Blows:
    """Lets blows fall, and keeps what fell."""

    def __init__(
        self, scene: Scene, staff: Staff, clerk: Clerk, started: Mapping[int, UUID]
    ) -> None:
        self._scene, self._staff, self._clerk, self._started = scene, staff, clerk, started
        self.strikes: list[Strike] = []
        self._thaws: list[threading.Timer] = []
        self._kinds: dict[Kind, Callable[[Blow], str]] = {
            Kind.KILL: self._kill,
            Kind.FAILPOINT: self._hire_doomed,
            Kind.FREEZE: self._freeze,
            Kind.STOP: self._stop,
            Kind.RESTART_FAST: self._restart_fast,
            Kind.RESTART_IMMEDIATE: self._restart_immediate,
            Kind.CUT_SESSIONS: self._cut_sessions,
            Kind.PURGE_MESSAGES: self._purge_messages,
            Kind.FLOOD_MESSAGES: self._flood_messages,
            Kind.KILL_DESTINATION: self._kill_destination,
            Kind.BLIND_LOOK_UPS: self._blind_look_ups,
            Kind.KILL_CLERK: self._kill_clerk,
        }

    def strike(self, blow: Blow) -> str:
        """Let it fall; return what it did, in a few words."""
        said = self._kinds[blow.kind](blow)
        if blow.run:
            stands_no_more(settings.ROMULUS_DATA).touch()
        return said

    def is_early(self, blow: Blow) -> bool:
        """Whether it is aimed at a run that nobody has taken up so far."""
        if not blow.run:
            return False
        run = self._started.get(blow.run)
        return run is None or Run.objects.filter(pk=run, fence=0).exists()

    def bury(self) -> list[str]:
        """Replace who has died by itself; return what happened."""
        said = []
        for worker in self._staff.bury():
            if worker.failpoint:
                said.append(f"{worker.name} died at {worker.failpoint}")
                self._note_death(worker, worker.failpoint)
            elif not worker.told_to_end:
                said.append(f"{worker.name} died by itself")
                self._staff.hire()
        return said

    # --- workers ----------------------------------------------------------------------------

    def _kill(self, blow: Blow) -> str:
        worker = self._prey(blow) or one_of(self._staff.alive(), blow.which)
        if worker is None:
            return "nobody was there to be killed"
        self._staff.kill(worker)
        self._note_death(worker, "killed")
        if not (worker.failpoint or worker.told_to_end):
            self._staff.hire()
        return f"{worker.name} was killed"

    def _prey(self, blow: Blow) -> WorkerProcess | None:
        """The worker that stands still at the first try of the blow's run. None where it is aimed
        at nobody, or another blow has taken the run from its worker before."""
        run = self._started.get(blow.run)
        if run is None:
            return None
        here = Run.objects.filter(pk=run, state=RunState.RUNNING, fence=1)
        workers = Worker.objects.filter(pk__in=here.values("lease_owner"))
        pids = set(workers.values_list("pid", flat=True))
        there = (each for each in self._staff.everyone if each.is_alive)
        return next((each for each in there if each.pid in pids), None)

    def _hire_doomed(self, blow: Blow) -> str:
        doomed = self._staff.doomed()
        if len(doomed) >= MOST_DOOMED:
            # It has not come to its point so far; and one that waits for ever is of no use.
            self._staff.kill(doomed[0])
            self._note_death(doomed[0], "killed")
        worker = self._staff.hire(blow.failpoint)
        return f"{worker.name} was hired, to die at {blow.failpoint}"

    def _freeze(self, blow: Blow) -> str:
        warm = [each for each in self._staff.alive() if not each.frozen]
        worker = one_of(warm, blow.which)
        if worker is None:
            return "nobody was there to be frozen"
        began = self._now()
        self._staff.freeze(worker)
        # By a clock of its own: whatever else is done here may wait for the one that is frozen.
        thaw = threading.Timer(blow.seconds, self._thaw, [worker, began])
        thaw.daemon = True
        thaw.start()
        self._thaws.append(thaw)
        return f"{worker.name} was frozen for {blow.seconds:.1f} s"

    def are_thawed(self) -> bool:
        """Whether everybody who was frozen is at work again."""
        return not any(thaw.is_alive() for thaw in self._thaws)

    def _thaw(self, worker: WorkerProcess, began: datetime) -> None:
        self._staff.thaw(worker)
        self.strikes.append(Strike("worker", "frozen", began, self._now(), worker.pid))

    def _stop(self, blow: Blow) -> str:
        worker = one_of(self._staff.healthy(), blow.which)
        if worker is None:
            return "nobody was there to be ended"
        self._staff.tell_to_end(worker)
        self._staff.hire()
        return f"{worker.name} was told to end"

    def _note_death(self, worker: WorkerProcess, what: str) -> None:
        at = worker.struck_at or self._now()
        self.strikes.append(Strike("worker", what, at, None, worker.pid))

    # --- the database and the broker --------------------------------------------------------

    def _restart_fast(self, blow: Blow) -> str:
        return self._restart(blow, immediate=False)

    def _restart_immediate(self, blow: Blow) -> str:
        return self._restart(blow, immediate=True)

    def _restart(self, blow: Blow, *, immediate: bool) -> str:
        server = self._scene.server
        if server is None:
            # It is not ours: other things may run on it.
            return self._cut_sessions(blow)
        began = self._now()
        away = scene.restart(server, immediate=immediate)
        how = "at once, as in a crash," if immediate else "fast"
        self.strikes.append(Strike("database", "restarted", began, self._now()))
        return f"PostgreSQL was stopped {how} and was away for {away:.1f} s"

    def _cut_sessions(self, _: Blow) -> str:
        began = self._now()
        number = scene.cut_sessions()
        self.strikes.append(Strike("database", "sessions cut", began, self._now()))
        return f"{number} sessions of the database were cut"

    def _purge_messages(self, _: Blow) -> str:
        return f"{broker.purge()} messages were dropped"

    def _flood_messages(self, _: Blow) -> str:
        """Hints at runs in whatever state, at operations that are no operations, and at nothing."""
        runs = list(Run.objects.order_by("-id").values_list("pk", flat=True)[: FLOOD // 2])
        for run in [*runs, *runs, uuid.uuid4()]:
            hints.send("workflows.tasks.advance", run)
            hints.send("reconciliation.tasks.reconcile", run)
        return f"{len(runs)} runs were hinted at twice, and some that do not exist"

    # --- the destination and the clerk ------------------------------------------------------

    def _kill_destination(self, _: Blow) -> str:
        began = self._now()
        self._scene.destination.kill()
        self._scene.destination.start()
        self.strikes.append(Strike("destination", "killed", began, self._now()))
        return "the destination was killed, and started again"

    def _blind_look_ups(self, blow: Blow) -> str:
        times = max(1, round(blow.seconds * LOOK_UPS_PER_SECOND))
        self._scene.destination.at_hand.arm(
            "lookup_unavailable", personality="lookup", path="/lookup/v1/machines", times=times
        )
        self.strikes.append(Strike("look-ups", "away", self._now(), None))
        return f"the next {times} look-ups are not answered"

    def _kill_clerk(self, blow: Blow) -> str:
        self._clerk.arm(blow.failpoint)
        return f"the clerk dies when it next comes to {blow.failpoint}"

    def _now(self) -> datetime:
        return self._scene.clock.now()


def one_of(there: list[WorkerProcess], which: float) -> WorkerProcess | None:
    return there[int(which * len(there))] if there else None
