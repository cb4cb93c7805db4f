"""The performance: runs are started, events sent, blows fall, people meddle; then peace, until all
is at rest.

One thread does everything in turn, so that what it starts itself (a server on a leash) lives as
long as it does, and nothing that it asks for is struck while it asks.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from django.db import connection

from romulus_site.polling import wait_until
from romulus_site.torture import rest
from romulus_site.torture.answers import thing
from romulus_site.torture.blows import Blows
from romulus_site.torture.clerk import Clerk
from romulus_site.torture.errands import Cancellation, Errands, Pause, open_holds
from romulus_site.torture.faults import NO_FAULT
from romulus_site.torture.plan import ROLL_CALL, Blow, Plan, PlannedErrand, PlannedRun
from romulus_site.torture.pulse import Pulse, unplanned
from romulus_site.torture.scene import NotSetUp, Scene
from romulus_site.torture.sendings import PlannedSending
from romulus_site.torture.strikes import Strikes, strikes_of
from romulus_site.torture.web import WebServer
from romulus_site.torture.workers import Staff, WorkerProcess
from workflows.models import Run

TICK_SECONDS = 0.02
# How often it is looked whether a worker has come to a blow's run, and for how long.
AIM_SECONDS, AIM_LIMIT_SECONDS = 0.1, 240.0
# After the blows: so long may pass without one run more at rest. A reconciliation whose process
# died is taken up again after a minute; how long a backlog takes is the machine's matter.
PEACE_SECONDS = 240.0
LOOK_SECONDS = 0.5
READY_SECONDS = 60.0
# A worker looks for messages each second; its consumer may be at its way back to the broker.
ROLL_SECONDS = 45.0
PROGRESS_SECONDS = 10.0
# The member of a request's body by which the faults of a write are armed.
ARMED_BY = {
    "torture.pay": ("keyed", "order"),
    "torture.rent": ("lookup", "name"),
    "torture.tell": ("blind", "body"),
}

Say = Callable[[str], None]


@dataclass(frozen=True)
class Delivery:
    """The sender of an event was told `outcome`, in its last of so many tries."""

    sending: PlannedSending
    outcome: str
    tries: int


@dataclass
class Performance:
    """What happened, for the record: by number the runs, what fell, and what people were told."""

    started: dict[int, UUID] = field(default_factory=dict)
    deliveries: list[Delivery] = field(default_factory=list)
    strikes: Strikes = field(default_factory=lambda: strikes_of([], 0))
    cancellations: list[Cancellation] = field(default_factory=list)
    pauses: list[Pause] = field(default_factory=list)
    stuck: list[rest.Restless] = field(default_factory=list)
    mishaps: list[str] = field(default_factory=list)
    blows: dict[str, int] = field(default_factory=dict)
    deaths_at: list[str] = field(default_factory=list)
    workers: int = 0
    clerk_deaths: list[str] = field(default_factory=list)
    slowest: tuple[str, float] = ("", 0.0)
    stalls: list[float] = field(default_factory=list)
    deaf: list[str] = field(default_factory=list)
    peace_seconds: float = 0.0


class Player:
    """Plays one plan on one scene."""

    def __init__(self, plan: Plan, scene: Scene, workers: int, say: Say) -> None:
        self._plan, self._scene, self._workers, self._say = plan, scene, workers, say
        self._staff = Staff(scene.folder, scene.clock)
        self._clerk = Clerk(scene.folder)
        self._web = WebServer(scene.folder)
        self._pulse = Pulse(scene.dsn, scene.clock.now, plan.lease)
        self.performance = Performance()
        self._began = 0.0
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        started = self.performance.started
        self._blows = Blows(scene, self._staff, self._clerk, started)
        self._errands = Errands(scene, self._clerk, started, self._later)

    def play(self) -> Performance:
        """Play it all; the workers are ended after it, however it is left."""
        try:
            self._pulse.start()
            self._clerk.start()
            self._web.start()
            first = [self._staff.hire() for _ in range(self._workers)]
            if not wait_until(lambda: all(each.is_ready() for each in first), READY_SECONDS):
                raise NotSetUp(f"The workers did not start; see {self._scene.folder / 'logs'}")
            self._clerk.ask("look")
            self._began = time.monotonic()
            self._write_agenda()
            self._work_off(self._plan.seconds)
            self._make_peace()
            self._wait_for_rest()
            if not self.performance.stuck:
                self._call_roll()
            self._staff.end()
        finally:
            self._clerk.stop()
            self._web.stop()
            self._staff.kill_all()
            self._pulse.stop()
        return self._told()

    def _told(self) -> Performance:
        performance = self.performance
        strikes = [*self._blows.strikes, *self._pulse.stalls]
        performance.strikes = strikes_of(strikes, self._plan.lease)
        performance.stalls = unplanned(self._pulse.stalls, self._blows.strikes)
        performance.cancellations = self._errands.cancellations
        performance.pauses = self._errands.pauses
        performance.mishaps += self._staff.mishaps
        performance.workers = len(self._staff.everyone)
        performance.clerk_deaths = list(self._clerk.deaths)
        performance.slowest = self._clerk.slowest
        return performance

    # --- the agenda -------------------------------------------------------------------------

    def _write_agenda(self) -> None:
        for run in self._plan.runs:
            self._at(run.at, partial(self._start, run))
        for sending in self._plan.sendings:
            self._at(sending.at, partial(self._send, sending))
        for blow in self._plan.blows:
            self._at(blow.at, partial(self._strike, blow))
        for errand in self._plan.errands:
            self._at(errand.at, partial(self._run, errand))

    def _at(self, seconds: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (seconds, next(self._order), do))

    def _later(self, seconds: float, do: Callable[[], None]) -> None:
        self._at(self._elapsed() + seconds, do)

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _work_off(self, until: float) -> None:
        while self._agenda or self._elapsed() < until:
            # Before each: on a machine that has too much to do there is always something due.
            self._bury()
            if self._agenda and self._agenda[0][0] <= self._elapsed():
                heapq.heappop(self._agenda)[2]()
            else:
                time.sleep(TICK_SECONDS)

    def _bury(self) -> None:
        for said in self._blows.bury():
            self._note(said)
        self.performance.deaths_at = [
            each.failpoint
            for each in self._staff.everyone
            if each.failpoint and each.struck_at is not None
        ]

    def _start(self, run: PlannedRun) -> None:
        if run.fault != NO_FAULT:
            personality, member = ARMED_BY[run.workflow]
            self._scene.destination.at_hand.arm(
                run.fault.text,
                personality=personality,
                body={member: thing(run.input, run.fault_visit)},
            )
        # Every third one by the call that starts many.
        do = "start_several" if run.number % 3 == 0 else "start"
        told = self._clerk.ask(do, workflow=run.workflow, input=run.input, key=run.key)
        self.performance.started[run.number] = UUID(told["run"])

    def _send(self, sending: PlannedSending) -> None:
        """As a sender does: again, until there is an answer. Every second run's over HTTP."""
        if sending.run % 2 == 0 and not sending.failpoint:
            over_http = self._web.deliver(sending)
            delivery = Delivery(sending, over_http.outcome, over_http.tries)
            self.performance.deliveries.append(delivery)
            return
        if sending.failpoint:
            self._clerk.arm(sending.failpoint)
        told = self._clerk.ask(
            "deliver",
            event_id=sending.event_id,
            type=sending.type,
            correlation=sending.correlation,
            number=sending.run,
        )
        delivery = Delivery(sending, told["outcome"], told["tries"])
        self.performance.deliveries.append(delivery)

    def _strike(self, blow: Blow) -> None:
        if self._elapsed() < blow.at + AIM_LIMIT_SECONDS and self._blows.is_early(blow):
            self._later(AIM_SECONDS, partial(self._strike, blow))
            return
        self._note(self._blows.strike(blow))
        counts = self.performance.blows
        counts[blow.kind] = counts.get(blow.kind, 0) + 1

    def _run(self, errand: PlannedErrand) -> None:
        subject = self._plan.runs[errand.run - 1]
        self._note(f"{errand.kind}: {self._errands.run(errand, subject)}")
        counts = self.performance.blows
        counts[errand.kind] = counts.get(errand.kind, 0) + 1

    def _note(self, what: str) -> None:
        self._say(f"{self._elapsed():6.1f} s  {what}")

    # --- peace ------------------------------------------------------------------------------

    def _make_peace(self) -> None:
        """What was paused goes on: that was on the agenda. Who waits for a failpoint ends, and the
        healthy ones are as many as they were."""
        while not self._blows.are_thawed():
            # Who dies meanwhile is noted now: what others take from it they take after that.
            self._bury()
            time.sleep(TICK_SECONDS)
        self._note("the blows are over")
        self._clerk.arm("")
        for worker in self._staff.doomed():
            self._staff.tell_to_end(worker)
        while len(self._staff.healthy()) < self._workers:
            self._staff.hire()

    def _wait_for_rest(self) -> None:
        began = told = last = self._elapsed()
        fewest = math.inf
        while self._elapsed() - last < PEACE_SECONDS:
            self._bury()
            self._let_go_on()
            restless = rest.restless()
            if not restless:
                break
            if len(restless) < fewest:
                fewest, last = len(restless), self._elapsed()
            if self._elapsed() - told > PROGRESS_SECONDS:
                told = self._elapsed()
                first = restless[0]
                self._note(
                    f"{len(restless)} runs are not at rest yet; the eldest, {first.workflow} "
                    f"{first.run}, is {first.state}: {first.why}"
                )
            time.sleep(LOOK_SECONDS)
        self.performance.peace_seconds = self._elapsed() - began
        self.performance.stuck = rest.restless()

    def _call_roll(self) -> None:
        """Let each worker that has lived through it all take a run, while the others are frozen:
        one that hears no message any more would not be missed before the last one is."""
        for worker in self._staff.healthy():
            others = [each for each in self._staff.healthy() if each is not worker]
            for other in others:
                self._staff.freeze(other)
            if not self._takes_a_run(worker):
                self.performance.deaf.append(
                    f"{worker.name} took no run any more; see {worker.log}"
                )
            for other in others:
                self._staff.thaw(other)

    def _takes_a_run(self, worker: WorkerProcess) -> bool:
        leaf = {"n": 0, "seconds": 0.0, "nap": 0.0}
        key = f"{ROLL_CALL}{worker.name}"
        run = self._clerk.ask("start", workflow="torture.leaf", input=leaf, key=key)["run"]
        over = Run.objects.filter(pk=run, finished_at__isnull=False)
        return wait_until(lambda: over.exists() or not worker.is_alive, ROLL_SECONDS)

    def _let_go_on(self) -> None:
        """Runs that are held because their workers died may be tried again now."""
        for hold in open_holds().filter(reason="workers_lost"):
            self._note(self._errands.decide(hold))
        connection.close_if_unusable_or_obsolete()
