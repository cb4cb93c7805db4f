"""The plan of a torture: from its seed alone, and with everything in it."""

from __future__ import annotations

from collections import Counter

import pytest

from reconciliation.rehearsal.plans import parse
from romulus_site.torture import points
from romulus_site.torture.faults import COMPLETED, NO_FAULT, OF_PERSONALITY
from romulus_site.torture.plan import (
    BLOWS,
    DRAWN,
    ERRANDS,
    Errand,
    Kind,
    Plan,
    PlannedRun,
    make_plan,
)
from romulus_site.torture.sendings import CERTAIN, Coming, PlannedSending
from workflows.failpoints import KNOWN, check_names

LEASE = 3.0
SEEDS = range(20)


def plan(seed: int, runs: int = 60, seconds: float = 20) -> Plan:
    return make_plan(runs, seconds, seed, lease=LEASE)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_seed_makes_the_same_plan(seed: int) -> None:
    assert plan(seed) == plan(seed)


def test_another_seed_makes_another_plan() -> None:
    assert len({plan(seed).blows for seed in SEEDS}) == len(SEEDS)
    assert len({str(plan(seed).runs) for seed in SEEDS}) == len(SEEDS)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_has_every_kind_of_blow_however_short_it_is(seed: int) -> None:
    for seconds in (5, 20, 120):
        kinds = Counter(blow.kind for blow in plan(seed, seconds=seconds).blows)
        assert set(kinds) == set(Kind) == set(BLOWS)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_has_every_errand_and_every_workflow(seed: int) -> None:
    made = plan(seed)
    assert {errand.kind for errand in made.errands} == set(ERRANDS)
    assert len({run.workflow for run in made.runs}) == len(DRAWN)


def test_a_longer_plan_has_more_blows() -> None:
    assert len(plan(1, seconds=120).blows) > len(plan(1, seconds=20).blows)


@pytest.mark.parametrize("seed", SEEDS)
def test_all_happens_in_its_time_and_in_order(seed: int) -> None:
    made = plan(seed)
    for things in (made.runs, made.sendings, made.errands, made.blows):
        times = [thing.at for thing in things]
        assert times == sorted(times)
        assert all(0 <= at <= made.seconds for at in times)
    assert [run.number for run in made.runs] == list(range(1, len(made.runs) + 1))
    assert all(1 <= errand.run <= len(made.runs) for errand in made.errands)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_has_events_that_come_in_every_way(seed: int) -> None:
    made = plan(seed)
    asked = [run for run in made.runs if run.coming is not None]
    assert {run.coming for run in asked} == set(Coming)
    assert {run.workflow for run in asked} == {"torture.question"}
    assert {sending.run for sending in made.sendings} == {run.number for run in asked}


def sent_for(made: Plan, coming: Coming) -> list[tuple[PlannedRun, list[PlannedSending]]]:
    return [
        (run, [sending for sending in made.sendings if sending.run == run.number])
        for run in made.runs
        if run.coming is coming
    ]


def deadline_of(run: PlannedRun) -> float:
    return run.at + float(run.input["patience"])


def test_each_event_is_sent_as_its_plan_says() -> None:
    made = plan(3, runs=600, seconds=200)
    for run, (only,) in sent_for(made, Coming.EARLY):
        assert only.at <= run.at
    for run, (first, again) in sent_for(made, Coming.TWICE):
        assert run.at < first.at <= again.at
        assert first.event_id == again.event_id
    for run, (only,) in sent_for(made, Coming.LATE):
        assert deadline_of(run) < only.at
    sides = {only.at < deadline_of(run) for run, (only,) in sent_for(made, Coming.AROUND)}
    assert sides == {True, False}
    for _, sendings in sent_for(made, Coming.NEAR_MISS):
        assert len({(each.type, each.correlation) for each in sendings}) == len(sendings) == 2
    points_of_death = {only.failpoint for _, (only,) in sent_for(made, Coming.KILLED)}
    assert points_of_death == {"before_event", "event_stored", "after_event"}


def test_a_run_that_waits_for_long_is_certain_to_get_its_event() -> None:
    made = plan(3, runs=600, seconds=200)
    for run in made.runs:
        if run.coming is not None:
            assert (run.input["patience"] > made.seconds) == (run.coming in CERTAIN)


def test_each_fault_comes_before_one_comes_twice() -> None:
    faults = Counter(run.fault for run in plan(1, runs=1000).runs if run.fault != NO_FAULT)
    assert set(faults) == {fault for kinds in OF_PERSONALITY.values() for fault in kinds}


def test_each_failpoint_of_a_worker_comes_before_one_comes_twice() -> None:
    blows = plan(1, seconds=1000).blows
    died_at = {blow.failpoint.split("*")[0] for blow in blows if blow.kind is Kind.FAILPOINT}
    assert died_at == set(points.OF_WORKER)
    check_names([blow.failpoint for blow in blows if blow.failpoint])


def test_every_failpoint_is_died_at_or_said_to_be_elsewhere() -> None:
    parts = (set(points.OF_WORKER), set(points.OF_CLERK), points.ELSEWHERE)
    assert set.union(*map(set, parts)) == KNOWN
    assert sum(map(len, parts)) == len(KNOWN)


@pytest.mark.parametrize(
    ("personality", "text"),
    [(personality, each.text) for personality, kinds in OF_PERSONALITY.items() for each in kinds],
)
def test_every_fault_is_one_that_the_destination_has(personality: str, text: str) -> None:
    assert parse(text).misfit(method="POST", personality=personality) is None


def test_a_freeze_ends_past_the_lease_and_before_it() -> None:
    seconds = [blow.seconds for blow in plan(1, seconds=600).blows if blow.kind is Kind.FREEZE]
    assert min(seconds) < LEASE < max(seconds)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_first_kill_is_aimed_at_a_run_that_stands_still_until_then(seed: int) -> None:
    made = plan(seed)
    kills = [blow for blow in made.blows if blow.kind is Kind.KILL]
    assert [blow for blow in made.blows if blow.run] == kills[:1]
    prey = made.runs[kills[0].run - 1]
    assert [run for run in made.runs if run.input.get("stands")] == [prey]
    assert (prey.workflow, prey.input["stumbles"], prey.end) == ("torture.walk", 0, COMPLETED)
    cancelled = {errand.run for errand in made.errands if errand.kind is Errand.CANCEL}
    assert prey.number not in cancelled


def test_where_nothing_can_stand_still_every_kill_falls_at_its_time() -> None:
    made = make_plan(20, 20, seed=1, lease=LEASE, only_writes=True)
    assert [blow for blow in made.blows if blow.run] == []


def test_a_plan_of_writes_alone_has_every_fault_of_every_provider() -> None:
    made = make_plan(2000, 600, seed=1, lease=LEASE, only_writes=True)
    workflows = Counter(run.workflow for run in made.runs)
    assert set(workflows) == {"torture.pay", "torture.rent", "torture.tell"}
    drawn = {run.fault for run in made.runs}
    assert drawn == {NO_FAULT, *(each for kinds in OF_PERSONALITY.values() for each in kinds)}
