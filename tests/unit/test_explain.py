"""Promise P12: each cause that keeps a run where it is, its sentence, and the facts behind it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.unit.run_facts import ADA, CRON, FACTS, NOW, TENANT, WHOLE, ago, worker
from workflows.core.explain import Cause, Explanation, explain
from workflows.core.joining import Ends
from workflows.core.run_facts import HeldChild
from workflows.core.states import RunState

AT = "at step 2 of 3, create_refund"


def why(state: RunState, **facts: Any) -> Explanation:
    return explain(replace(FACTS, state=state, **facts), NOW)


def waiting(reason: str, message: str = "", **facts: Any) -> Explanation:
    return why(RunState.WAITING, reason=reason, message=message, **facts)


def leased(seconds: float, **facts: Any) -> Explanation:
    """A run whose lease ends `seconds` from now."""
    lease = {
        "worker": "host/17",
        "tries": 2,
        "claimed_at": ago(30),
        "lease_expires_at": ago(-seconds),
    }
    return why(RunState.RUNNING, **(lease | facts))


CASES: dict[str, tuple[Explanation, Cause, str, str, str]] = {
    "completed": (
        why(RunState.COMPLETED),
        Cause.FINISHED,
        "Every step is committed.",
        "Nothing is needed.",
        "",
    ),
    "failed": (
        why(RunState.FAILED, message="Payments refused it.", owner="finance"),
        Cause.FINISHED,
        f"It failed {AT}: Payments refused it.",
        "Start a new run.",
        "finance",
    ),
    "cancelled": (
        why(RunState.CANCELLED, cancel=ADA),
        Cause.FINISHED,
        f"It was cancelled by ada {AT}.",
        "Nothing is needed.",
        "",
    ),
    "held": (
        why(RunState.HELD, message="The key may be gone.", owner="finance"),
        Cause.HELD,
        f"It is held {AT}. The key may be gone.",
        "A recorded decision. Waiting longer or restarting workers will not help.",
        "finance",
    ),
    "held, and what helps is known better": (
        why(RunState.HELD, message="The key may be gone.", owner="finance", helps="A record."),
        Cause.HELD,
        f"It is held {AT}. The key may be gone.",
        "A record.",
        "finance",
    ),
    "held for nobody": (
        why(RunState.HELD, message="The key may be gone."),
        Cause.HELD,
        f"It is held {AT}. The key may be gone.",
        "A recorded decision. Waiting longer or restarting workers will not help.",
        "nobody: no queue takes it, an administrator must set one up",
    ),
    "held and paused": (
        why(RunState.HELD, message="The key may be gone.", owner="finance", pause=ADA),
        Cause.HELD,
        f"It is held {AT}. The key may be gone. Besides, it is paused by ada since 02:59:12 UTC: "
        "The auditor is here.",
        "A recorded decision. Waiting longer or restarting workers will not help. Then resuming "
        "the run.",
        "finance",
    ),
    "to be cancelled, with a write that is held": (
        why(
            RunState.HELD,
            cancel=ADA,
            unsettled="Refund 125.00",
            message="It may have happened once.",
            owner="finance",
        ),
        Cause.CANCELLING,
        f"Its end was asked for by ada at 02:59:12 UTC, {AT}. First it has to be settled what "
        "became of “Refund 125.00”, and that is held. It may have happened once.",
        "A recorded decision. Waiting longer or restarting workers will not help. The run ends "
        "then.",
        "finance",
    ),
    "to be cancelled, with a write that is looked up": (
        waiting("look_up_later", "It is asked again soon.", cancel=ADA, unsettled="Refund 125.00"),
        Cause.CANCELLING,
        f"Its end was asked for by ada at 02:59:12 UTC, {AT}. First it has to be settled what "
        "became of “Refund 125.00”: It is asked again soon.",
        "The provider's answer, or a decision. The run ends then.",
        "Romulus",
    ),
    "to be cancelled, with a write that a worker is at": (
        leased(9, cancel=ADA, unsettled="Refund 125.00"),
        Cause.CANCELLING,
        f"Its end was asked for by ada at 02:59:12 UTC, {AT}. First it has to be settled what "
        "became of “Refund 125.00”: worker host/17 is on it.",
        "The provider's answer, or a decision. The run ends then.",
        "Romulus",
    ),
    "to be cancelled, with a write that no worker can settle": (
        leased(-9, cancel=ADA, unsettled="Refund 125.00", workers=()),
        Cause.CANCELLING,
        f"Its end was asked for by ada at 02:59:12 UTC, {AT}. First it has to be settled what "
        "became of “Refund 125.00”: the outcome of its write is being found out.",
        "Starting a worker that has refund version 4. The run ends then.",
        "whoever runs the workers",
    ),
    "to be cancelled, with nothing open": (
        why(RunState.READY, cancel=CRON),
        Cause.CANCELLING,
        f"Its end was asked for by cron at the terminal on 9 Mar 2026, 03:00:12 UTC, {AT}. "
        "Nothing of it is open on another system.",
        "The next sweep ends it.",
        "Romulus",
    ),
    "to be cancelled, and nobody sweeps": (
        why(RunState.READY, cancel=ADA, workers=()),
        Cause.CANCELLING,
        f"Its end was asked for by ada at 02:59:12 UTC, {AT}. Nothing of it is open on another "
        "system.",
        "A worker whose sweep ends it: no worker is alive.",
        "whoever runs the workers",
    ),
    "paused itself": (
        why(RunState.READY, pause=ADA),
        Cause.RUN_PAUSED,
        f"It is paused {AT}, by ada since 02:59:12 UTC: The auditor is here.",
        "Resuming the run.",
        "ada",
    ),
    "paused itself and with its workflow": (
        why(RunState.READY, pause=ADA, pauses=(WHOLE,)),
        Cause.RUN_PAUSED,
        f"It is paused {AT}, by ada since 02:59:12 UTC: The auditor is here.",
        "Resuming the run, and resuming workflow refund.",
        "ada",
    ),
    "paused with its workflow": (
        why(RunState.READY, pauses=(WHOLE, TENANT)),
        Cause.PAUSED,
        f"It is ready {AT}, and workflow refund is paused by bo since 02:59:42 UTC: New rules.",
        "Resuming workflow refund, and resuming tenant Northwind.",
        "bo",
    ),
    "paused after its worker went quiet": (
        leased(-9, pause=ADA),
        Cause.RUN_PAUSED,
        f"Worker host/17 went quiet {AT}, and nobody takes over: it is paused by ada since "
        "02:59:12 UTC: The auditor is here.",
        "Resuming the run.",
        "ada",
    ),
    "at work, and paused after this step": (
        leased(9, pause=CRON),
        Cause.LEASED,
        f"Worker host/17 is on it {AT}, try 2, since 02:59:42 UTC; its lease runs until 03:00:21 "
        "UTC. After this step it stops: it is paused by cron at the terminal since 9 Mar 2026, "
        "03:00:12 UTC.",
        "Nothing is needed for this step. Then resuming the run.",
        "host/17",
    ),
    "dispatch is not on": (
        waiting("dispatch", "Dispatch is not on.", owner="finance"),
        Cause.DISPATCH,
        f"It waits {AT}: Dispatch is not on.",
        "Turning dispatch on.",
        "finance",
    ),
    "its write is being settled": (
        waiting("look_up_later", "It is asked again soon."),
        Cause.SETTLING,
        f"It waits {AT}: It is asked again soon.",
        "The provider's answer, or a decision.",
        "Romulus",
    ),
    "waiting, for a reason that is not known here": (
        waiting("event", "It waits for charge.refunded.", helps="The event."),
        Cause.WAITING,
        f"It waits {AT}: It waits for charge.refunded.",
        "The event.",
        "Romulus",
    ),
    "sleeping": (
        waiting("sleeping", wake_at=NOW + timedelta(days=2)),
        Cause.SLEEPING,
        f"It sleeps {AT} until 12 Mar 2026, 03:00:12 UTC.",
        "Time.",
        "Romulus",
    ),
    "its sleep is over": (
        waiting("sleeping", wake_at=ago(1)),
        Cause.SLEEPING,
        f"It slept {AT} until 03:00:11 UTC, and is to be woken.",
        "The next sweep wakes it.",
        "Romulus",
    ),
    "its sleep is over, and nobody wakes it": (
        waiting("sleeping", wake_at=ago(100), workers=(worker(swept_at=ago(99)),)),
        Cause.SWEEP_BEHIND,
        f"It slept {AT} until 02:58:32 UTC, and is to be woken.",
        "A worker whose sweep wakes it: no live worker has swept since 02:58:33 UTC.",
        "whoever runs the workers",
    ),
    "waiting for runs at work": (
        waiting("children", children=Ends(completed=3, at_work=2)),
        Cause.CHILDREN,
        f"It waits {AT}: 3 of 5 runs that it started have ended.",
        "The ends of those runs.",
        "Romulus",
    ),
    "waiting for runs of which one is held": (
        waiting("children", children=Ends(completed=3, failed=1, at_work=2, held=1, queued=4)),
        Cause.CHILDREN,
        f"It waits {AT}: 4 of 11 runs that it started have ended; 1 held for a person; 4 wait for "
        "their turn.",
        "A recorded decision on what is held, and the ends of the others.",
        "whoever decides what is held",
    ),
    "waiting for a held run alone": (
        waiting("children", children=Ends(completed=3, held=1)),
        Cause.CHILDREN,
        f"It waits {AT}: 3 of 4 runs that it started have ended; 1 held for a person.",
        "A recorded decision on what is held.",
        "whoever decides what is held",
    ),
    "waiting for runs that have all ended": (
        waiting("children", children=Ends(completed=3)),
        Cause.CHILDREN,
        f"It waits {AT}: 3 of 3 runs that it started have ended.",
        "The next sweep lets it go on.",
        "Romulus",
    ),
    "waiting for its turn": (
        waiting("turn", beside=Ends(at_work=2, queued=5, completed=3), at_once=2),
        Cause.TURN,
        "It has not begun: it waits for its turn, of the 10 runs started with it 2 may be at work "
        "at once.",
        "The end, or the hold, of one of the runs beside it.",
        "Romulus",
    ),
    "a worker is on it": (
        leased(9),
        Cause.LEASED,
        f"Worker host/17 is on it {AT}, try 2, since 02:59:42 UTC; its lease runs until 03:00:21 "
        "UTC.",
        "Nothing is needed.",
        "host/17",
    ),
    "its worker went quiet": (
        leased(-9),
        Cause.LEASE_EXPIRED,
        f"Worker host/17 went quiet {AT}; its lease ran out at 03:00:03 UTC, 9 s ago. It is lost "
        "try 1 of 3 at this step.",
        "The next sweep gives it to another worker.",
        "Romulus",
    ),
    "its third worker went quiet": (
        leased(0, losses=2),
        Cause.LEASE_EXPIRED,
        f"Worker host/17 went quiet {AT}; its lease ran out at 03:00:12 UTC, 0 s ago. It is lost "
        "try 3 of 3 at this step; as many as are allowed, so it is held then.",
        "The next sweep gives it to another worker.",
        "Romulus",
    ),
    "resting before the next try": (
        why(RunState.READY, ready_at=ago(-12.4), tries=2, message="TimeoutError: no answer"),
        Cause.RETRY,
        f"Try 3 is due at 03:00:24 UTC, in 12 s, {AT}. TimeoutError: no answer",
        "Time.",
        "Romulus",
    ),
    "nobody has its version": (
        why(RunState.READY, workers=(worker(version=3), worker(version=5), worker(version=5))),
        Cause.NO_WORKER,
        f"It is ready {AT}, and none of the 3 live workers has refund version 4. They have "
        "version 3 (1 worker), version 5 (2 workers).",
        "Starting a worker that has refund version 4.",
        "whoever runs the workers",
    ),
    "nobody has any version": (
        why(RunState.READY, workflow="other", ready_at=ago(-60)),
        Cause.NO_WORKER,
        f"It is ready {AT}, and none of the 2 live workers has other version 4. None of them has "
        "any version of other.",
        "Starting a worker that has other version 4.",
        "whoever runs the workers",
    ),
    "its worker went quiet, and nobody is left": (
        leased(-9, workers=()),
        Cause.NO_WORKER,
        f"Worker host/17 went quiet {AT}, and none of the 0 live workers has refund version 4.",
        "Starting a worker that has refund version 4.",
        "whoever runs the workers",
    ),
    "the broker is away": (
        why(RunState.READY, workers=(worker(broker_away_since=ago(70)), worker("host/18"))),
        Cause.BROKER_AWAY,
        f"It is ready {AT}, and messages do not reach the broker since 02:59:02 UTC, as 1 of the "
        "2 live workers that have its version say.",
        "The broker. As soon as it is back the next sweep sends word, and nothing is lost; a "
        "worker that is at work takes it without.",
        "whoever runs the broker",
    ),
    "the sweep is behind": (
        why(RunState.READY, ready_at=ago(50), workers=(worker(swept_at=ago(41)),)),
        Cause.SWEEP_BEHIND,
        f"It is ready {AT}, due since 02:59:22 UTC, and the sweep is behind: no live worker that "
        "has its version has swept since 02:59:31 UTC, for 41 s.",
        "A worker whose sweep works; restart those that are there. One that is free earlier takes "
        "it by itself.",
        "whoever runs the workers",
    ),
    "ready, and it is the next": (
        why(RunState.READY),
        Cause.BACKLOG,
        f"It is ready {AT}; it is the next.",
        "A free worker; 2 have this version.",
        "Romulus",
    ),
    "ready, behind others": (
        why(RunState.READY, ahead=4100, visit=3),
        Cause.BACKLOG,
        f"It is ready {AT}, visit 3; 4,100 runs are ahead of it.",
        "A free worker; 2 have this version.",
        "Romulus",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_case_says_why_what_would_move_it_and_who_owns_it(name: str) -> None:
    said, cause, sentence, moves, owner = CASES[name]
    assert (said.cause, said.sentence, said.moves, said.owner) == (cause, sentence, moves, owner)


def test_every_cause_has_its_case() -> None:
    of_waits = {Cause.EVENT, Cause.ARRIVED, Cause.AMBIGUOUS}  # test_explain_waits.py
    assert {case[1] for case in CASES.values()} == set(Cause) - of_waits


@pytest.mark.parametrize("state", RunState)
def test_every_state_has_a_sentence_that_rests_on_where_the_run_is(state: RunState) -> None:
    said = why(state, lease_expires_at=NOW, reason="whatever")
    assert said.sentence
    assert said.facts["state"] == state
    assert (said.facts["step"], said.facts["number"], said.facts["visit"]) == (
        "create_refund",
        2,
        1,
    )


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("a worker is on it", {"worker", "since", "lease_expires_at", "try"}),
        ("its worker went quiet", {"worker", "lease_expires_at", "lost_tries"}),
        ("resting before the next try", {"ready_at", "next_try", "message"}),
        ("nobody has its version", {"workers_alive", "workers"}),
        ("the broker is away", {"broker_away_since", "workers_that_say_so"}),
        ("the sweep is behind", {"due_since", "swept_at", "behind_after_seconds"}),
        ("ready, behind others", {"ahead", "workers_with_version", "ready_at"}),
        ("paused itself and with its workflow", {"paused"}),
        ("held and paused", {"held_for", "message", "paused"}),
        ("to be cancelled, with a write that is held", {"cancel", "unsettled", "held_for"}),
        ("sleeping", {"wake_at"}),
        ("waiting for runs of which one is held", {"started", "held", "queued", "held_runs"}),
        ("waiting for its turn", {"at_once", "at_work_beside"}),
    ],
)
def test_the_facts_behind_a_sentence_come_with_it(name: str, facts: set[str]) -> None:
    assert facts <= CASES[name][0].facts.keys()


def test_who_is_alive_with_what_is_told_where_nobody_has_the_version() -> None:
    workers = CASES["nobody has its version"][0].facts["workers"]
    assert workers[0] == {"name": "host/17", "workflows": ["refund v3", "triage v1"]}


def test_every_pause_is_among_the_facts_the_most_specific_first() -> None:
    paused = CASES["paused itself and with its workflow"][0].facts["paused"]
    assert [each["what"] for each in paused] == ["the run", "workflow refund"]
    assert paused[1] == {
        "what": "workflow refund",
        "by": "user:4 bo",
        "at": ago(30),
        "reason": "New rules.",
    }


def test_held_runs_are_named_for_who_waits_for_them() -> None:
    held = (HeldChild("1234", "Import file, orders-003.csv", "line 17"),)
    said = waiting("children", children=Ends(held=1), held_children=held)
    assert said.facts["held_runs"] == [{"id": "1234", "name": "Import file, orders-003.csv"}]


# --- where one cause ends and the next begins -------------------------------------------------


def test_a_wish_for_the_end_goes_before_a_pause() -> None:
    said = why(RunState.READY, cancel=ADA, pause=ADA, pauses=(WHOLE,))
    assert said.cause is Cause.CANCELLING


def test_a_pause_goes_before_what_workers_could_do() -> None:
    for facts in ({"workers": ()}, {"ready_at": ago(-60)}, {"ahead": 9}):
        assert why(RunState.READY, pauses=(WHOLE,), **facts).cause is Cause.PAUSED


def test_a_rest_that_nobody_can_end_says_that_a_worker_is_missing() -> None:
    assert why(RunState.READY, ready_at=ago(-60), workers=()).cause is Cause.NO_WORKER


def test_a_rest_is_a_rest_while_the_broker_is_away() -> None:
    away = (worker(broker_away_since=ago(70)),)
    assert why(RunState.READY, ready_at=ago(-60), workers=away).cause is Cause.RETRY


def test_a_broker_that_only_others_cannot_reach_is_no_cause() -> None:
    others = worker(version=3, broker_away_since=ago(70))
    assert why(RunState.READY, workers=(worker(), others)).cause is Cause.BACKLOG


@pytest.mark.parametrize(
    ("due", "swept", "behind"),
    [
        (ago(16), ago(16), True),
        (ago(15), ago(16), False),  # it has not been due for long
        (ago(16), ago(15), False),  # somebody has swept lately enough
    ],
)
def test_the_sweep_is_behind_after_a_lease(due: datetime, swept: datetime, behind: bool) -> None:
    said = why(RunState.READY, ready_at=due, workers=(worker(swept_at=swept),))
    assert (said.cause is Cause.SWEEP_BEHIND) == behind


def test_the_sweep_is_behind_after_five_sweeps_where_they_are_rare() -> None:
    rare = {"sweep": timedelta(seconds=20), "ready_at": ago(200)}
    assert why(RunState.READY, workers=(worker(swept_at=ago(99)),), **rare).cause is Cause.BACKLOG
    late = why(RunState.READY, workers=(worker(swept_at=ago(101)),), **rare)
    assert late.cause is Cause.SWEEP_BEHIND


def test_a_worker_that_has_just_started_is_given_time_to_sweep() -> None:
    def started(seconds: float) -> Explanation:
        fresh = worker(started_at=ago(seconds), swept_at=None)
        return why(RunState.READY, ready_at=ago(600), workers=(fresh,))

    assert started(10).cause is Cause.BACKLOG
    assert started(20).cause is Cause.SWEEP_BEHIND


def test_one_worker_that_sweeps_is_enough() -> None:
    workers = (worker(swept_at=ago(300)), worker("host/18", swept_at=ago(1)))
    assert why(RunState.READY, ready_at=ago(200), workers=workers).cause is Cause.BACKLOG


def test_an_expired_lease_that_nobody_was_told_of_says_so() -> None:
    late = (worker(swept_at=ago(100)),)
    assert leased(-60, workers=late).cause is Cause.SWEEP_BEHIND
    assert leased(-60, workers=(worker(broker_away_since=ago(5)),)).cause is Cause.BROKER_AWAY
    assert "It is ready" not in leased(-60, workers=late).sentence


def test_a_step_that_its_workflow_has_no_more_is_named_without_a_number() -> None:
    assert "at step create_refund;" in why(RunState.READY, number=0, steps=0).sentence
