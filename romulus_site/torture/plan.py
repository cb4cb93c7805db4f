"""What a torture does, from its seed alone: runs, faults, events, errands and blows, each with its
time.

Pure: the same numbers give the same plan, on every machine. What comes of it differs from time to
time, and that is the point: a plan can be repeated until a rare meeting of two blows happens.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Generic, TypeVar

from romulus_site.torture import answers, points
from romulus_site.torture.faults import COMPLETED, FAILED, NO_FAULT, OF_PERSONALITY, Fault
from romulus_site.torture.sendings import (
    Coming,
    PlannedSending,
    in_order,
    patience_for,
    sendings_for,
)

Item = TypeVar("Item")

# How the start keys of runs begin that each worker takes at the end.
ROLL_CALL = "roll call of "
# Runs are started in this part of the time, so that the last ones are struck as well.
STARTING = 0.85
# Blows begin when the first runs are at work.
FIRST_BLOW = 1.0
BLOWS_PER_SECOND = 0.6
# Of the runs that can be made to fail, how many are.
DOOMED, BROKEN = 0.1, 0.35
LINGERING, LONGER_THAN_A_LEASE = 0.12, 4.5
ERRANDS_PER_SECOND = 0.3


class Kind(StrEnum):
    """What is struck, and how."""

    KILL = "kill"
    FAILPOINT = "failpoint"
    FREEZE = "freeze"
    STOP = "stop"
    RESTART_FAST = "restart_fast"
    RESTART_IMMEDIATE = "restart_immediate"
    CUT_SESSIONS = "cut_sessions"
    PURGE_MESSAGES = "purge_messages"
    FLOOD_MESSAGES = "flood_messages"
    KILL_DESTINATION = "kill_destination"
    BLIND_LOOK_UPS = "blind_look_ups"
    KILL_CLERK = "kill_clerk"


# How often each falls, against the others. Whatever costs everybody seconds is rarer.
BLOWS = {
    Kind.FAILPOINT: 16,
    Kind.KILL: 8,
    Kind.FREEZE: 6,
    Kind.STOP: 2,
    Kind.CUT_SESSIONS: 2,
    Kind.RESTART_FAST: 1,
    Kind.RESTART_IMMEDIATE: 1,
    Kind.PURGE_MESSAGES: 4,
    Kind.FLOOD_MESSAGES: 2,
    Kind.KILL_DESTINATION: 2,
    Kind.BLIND_LOOK_UPS: 3,
    Kind.KILL_CLERK: 4,
}


class Errand(StrEnum):
    """What people do meanwhile."""

    CANCEL = "cancel"
    PAUSE = "pause"
    PAUSE_ALL = "pause_all"  # the runs of a workflow
    SWITCH = "switch"  # the dispatch to a provider, to paused
    DECIDE = "decide"
    ASK = "ask"
    PURGE = "purge"


ERRANDS = {
    Errand.CANCEL: 3,
    Errand.PAUSE: 3,
    Errand.DECIDE: 3,
    Errand.ASK: 1,
    Errand.PAUSE_ALL: 1,
    Errand.SWITCH: 1,
    Errand.PURGE: 1,
}


@dataclass(frozen=True)
class PlannedRun:
    """A run to start, and the end that it has when nobody else does anything to it."""

    number: int
    at: float
    workflow: str
    input: dict[str, Any]
    fault: Fault = NO_FAULT
    fault_visit: int = 1
    end: str = COMPLETED
    coming: Coming | None = None  # how its event comes, where it waits for one

    @property
    def key(self) -> str:
        return f"torture-{self.number}"


@dataclass(frozen=True)
class PlannedErrand:
    """What somebody does at a time: to the run of that number, its workflow or its provider, or
    to the eldest open hold."""

    at: float
    kind: Errand
    run: int = 0
    seconds: float = 0.0  # until what was paused goes on


@dataclass(frozen=True)
class Blow:
    """One blow.

    Attributes:
        which: which of those that are there is struck, from 0 to 1.
        seconds: how long it is frozen, or away.
        failpoint: where a process dies by itself.
        run: falls as soon as a worker is at the run of that number, and on that worker; 0: at its
            time, whatever anybody is at.
    """

    at: float
    kind: Kind
    which: float = 0.0
    seconds: float = 0.0
    failpoint: str = ""
    run: int = 0


@dataclass(frozen=True)
class Plan:
    seed: int
    seconds: float
    lease: float
    runs: tuple[PlannedRun, ...]
    sendings: tuple[PlannedSending, ...]
    errands: tuple[PlannedErrand, ...]
    blows: tuple[Blow, ...]


def make_plan(
    runs: int, seconds: float, seed: int, *, lease: float, only_writes: bool = False
) -> Plan:
    """Return the plan of `runs` runs and of blows for `seconds`; `lease` as the workers have it.

    With `only_writes` each run writes to a destination, and none does anything else.
    """
    drawn = WRITING if only_writes else DRAWN
    started = tuple(
        runs_of(random.Random(f"{seed} runs"), runs, seconds * STARTING, drawn)  # noqa: S311
    )
    made = Plan(
        seed,
        seconds,
        lease,
        started,
        in_order(events_of(random.Random(f"{seed} events"), started), seconds),  # noqa: S311
        tuple(errands_of(random.Random(f"{seed} errands"), runs, seconds)),  # noqa: S311
        tuple(blows_of(random.Random(f"{seed} blows"), seconds, lease)),  # noqa: S311
    )
    return with_prey(made)


def with_prey(plan: Plan) -> Plan:
    """Let one run stand still in its first try until the first kill has fallen, on the worker that
    is at it. Else it would be the machine's speed that says whether any worker loses a run."""
    cancelled = {errand.run for errand in plan.errands if errand.kind is Errand.CANCEL}
    walks = [run for run in plan.runs if run.workflow == "torture.walk"]
    prey = next((run for run in walks if run.number not in cancelled), None)
    if prey is None:
        return plan
    given = prey.input | {"stands": True, "stumbles": 0}
    stands = replace(prey, input=given, end=COMPLETED)
    first = next(blow for blow in plan.blows if blow.kind is Kind.KILL)
    aimed = replace(first, run=prey.number)
    return replace(
        plan,
        runs=tuple(stands if run is prey else run for run in plan.runs),
        blows=tuple(aimed if blow is first else blow for blow in plan.blows),
    )


def dealt(draw: random.Random, cards: Sequence[Item], number: int) -> list[Item]:
    """Deal `number` of `cards`, from shuffled packs: each comes as often as it is in them."""
    hand: list[Item] = []
    while len(hand) < number:
        hand += draw.sample(cards, len(cards))
    return hand[:number]


# --- runs -------------------------------------------------------------------------------------


def runs_of(
    draw: random.Random, number: int, seconds: float, drawn: Mapping[DrawRun, int]
) -> list[PlannedRun]:
    pack = [draw_run for draw_run, times in drawn.items() for _ in range(times)]
    times = sorted(draw.uniform(0, seconds) for _ in range(number))
    packs = Packs(
        faults={
            personality: Pack(draw, [NO_FAULT] * len(kinds) + list(kinds))
            for personality, kinds in OF_PERSONALITY.items()
        },
        comings=Pack(draw, list(Coming)),
    )
    return [
        draw_run(draw, number, at, packs)
        for number, (at, draw_run) in enumerate(
            zip(times, dealt(draw, pack, number), strict=True), start=1
        )
    ]


class Pack(Generic[Item]):
    """What is dealt one by one, so that each comes before one comes twice."""

    def __init__(self, draw: random.Random, cards: list[Item]) -> None:
        self._draw, self._cards = draw, cards
        self._left: list[Item] = []

    def deal(self) -> Item:
        if not self._left:
            self._left = self._draw.sample(self._cards, len(self._cards))
        return self._left.pop()


@dataclass(frozen=True)
class Packs:
    """What runs are dealt: faults of their writes by personality, and how their events come."""

    faults: dict[str, Pack[Fault]]
    comings: Pack[Coming]


def common(draw: random.Random, number: int) -> answers.Input:
    """How long the steps of a run work. Some work for longer than a blow takes to come."""
    return {"n": number, "seconds": draw.choice([0.0, 0.0, 0.01, 0.05, 0.3])}


def draw_walk(draw: random.Random, number: int, at: float, _: Packs) -> PlannedRun:
    doomed = draw.random() < DOOMED
    # Some steps take longer than a lease: it has to be renewed.
    lingers = draw.random() < LINGERING and not doomed
    more = {
        "rounds": draw.randint(1, 4),
        "nap": round(draw.uniform(0.0, 1.5), 3),
        "size": draw.choice([1, 10, 2000, 20_000]),
        "stumbles": 99 if doomed else draw.choice([0, 0, 1, 2]),
        "linger": LONGER_THAN_A_LEASE if lingers else 0.0,
    }
    end = FAILED if doomed else COMPLETED
    return PlannedRun(number, at, "torture.walk", common(draw, number) | more, end=end)


def draw_family(draw: random.Random, number: int, at: float, _: Packs) -> PlannedRun:
    return PlannedRun(number, at, "torture.family", with_leaves(draw, number))


def draw_strict(draw: random.Random, number: int, at: float, _: Packs) -> PlannedRun:
    given = with_leaves(draw, number)
    end = FAILED if given["broken"] else COMPLETED
    return PlannedRun(number, at, "torture.strict", given, end=end)


def with_leaves(draw: random.Random, number: int) -> answers.Input:
    return common(draw, number) | {
        "leaves": draw.randint(2, 5),
        "nap": round(draw.uniform(0.0, 1.0), 3),
        "broken": draw.random() < BROKEN,
    }


def draw_group(draw: random.Random, number: int, at: float, _: Packs) -> PlannedRun:
    broken = draw.random() < BROKEN
    more = {"broken": broken, "stumbles": draw.choice([0, 0, 1, 2])}
    end = FAILED if broken else COMPLETED
    return PlannedRun(number, at, "torture.group", common(draw, number) | more, end=end)


def draw_write(workflow: str, personality: str, rounds: int) -> DrawRun:
    def draw_one(draw: random.Random, number: int, at: float, packs: Packs) -> PlannedRun:
        last = draw.randint(1, rounds)
        fault = packs.faults[personality].deal()
        given = common(draw, number) | {"thing": f"t{number}", "rounds": last}
        visit = draw.randint(1, last)
        return PlannedRun(number, at, workflow, given, fault, visit, end=fault.end)

    return draw_one


def draw_question(draw: random.Random, number: int, at: float, packs: Packs) -> PlannedRun:
    coming = packs.comings.deal()
    given = common(draw, number) | {"patience": patience_for(draw, coming)}
    return PlannedRun(number, at, "torture.question", given, coming=coming)


DrawRun = Callable[[random.Random, int, float, Packs], PlannedRun]
WRITING: dict[DrawRun, int] = {
    draw_write("torture.pay", "keyed", 2): 4,
    draw_write("torture.rent", "lookup", 1): 3,
    draw_write("torture.tell", "blind", 1): 2,
}
DRAWN: dict[DrawRun, int] = {
    draw_walk: 5,
    draw_family: 2,
    draw_strict: 1,
    draw_group: 3,
    **WRITING,
    draw_question: 6,
}


# --- events -----------------------------------------------------------------------------------


def events_of(draw: random.Random, runs: Sequence[PlannedRun]) -> Iterator[PlannedSending]:
    for run in runs:
        if run.coming is not None:
            patience = run.input["patience"]
            yield from sendings_for(draw, run.number, run.at, run.coming, patience)


# --- errands ----------------------------------------------------------------------------------


def errands_of(draw: random.Random, runs: int, seconds: float) -> list[PlannedErrand]:
    pack = [kind for kind, times in ERRANDS.items() for _ in range(times)]
    number = max(len(pack), round(seconds * ERRANDS_PER_SECOND))
    errands = []
    for kind in dealt(draw, pack, number):
        at = draw.uniform(FIRST_BLOW, seconds)
        # Of the runs that may have been started by then, one of the later ones.
        newest = max(1, round(runs * min(1.0, at / (seconds * STARTING))))
        run = draw.randint(max(1, newest - max(3, runs // 10)), newest)
        errands.append(PlannedErrand(at, kind, run, seconds=draw.uniform(0.5, 4.0)))
    return sorted(errands, key=lambda errand: errand.at)


# --- blows ------------------------------------------------------------------------------------


def blows_of(draw: random.Random, seconds: float, lease: float) -> list[Blow]:
    """Every kind at least once, the rest by their weights, spread over the time."""
    more = max(0, round(seconds * BLOWS_PER_SECOND) - len(BLOWS))
    kinds = [*BLOWS, *draw.choices(list(BLOWS), list(BLOWS.values()), k=more)]
    draw.shuffle(kinds)
    times = sorted(draw.uniform(FIRST_BLOW, seconds) for _ in kinds)
    deaths = Deaths(draw)
    return [blow_of(draw, kind, at, lease, deaths) for kind, at in zip(kinds, times, strict=True)]


class Deaths:
    """Failpoints dealt one by one, so that each comes before one comes twice."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._left: dict[Kind, list[str]] = {}

    def deal(self, kind: Kind) -> str:
        known = points.OF_CLERK if kind is Kind.KILL_CLERK else points.OF_WORKER
        left = self._left.setdefault(kind, [])
        if not left:
            left += self._draw.sample(sorted(known), len(known))
        name = left.pop()
        passage = self._draw.randint(1, known[name])
        return name if passage == 1 else f"{name}*{passage}"


def blow_of(draw: random.Random, kind: Kind, at: float, lease: float, deaths: Deaths) -> Blow:
    which = draw.random()
    match kind:
        case Kind.FREEZE:
            # Mostly past the lease, so that somebody takes over; sometimes just before its end.
            return Blow(at, kind, which, seconds=draw.uniform(0.5, 3.0) * lease)
        case Kind.FAILPOINT | Kind.KILL_CLERK:
            return Blow(at, kind, which, failpoint=deaths.deal(kind))
        case Kind.BLIND_LOOK_UPS:
            return Blow(at, kind, which, seconds=draw.uniform(0.5, 3.0))
        case _:
            return Blow(at, kind, which)
