"""What keeps a run that a worker has or should take: leases, versions, the broker, the sweep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from workflows.core.durations import age, moment, on
from workflows.core.retry import MAX_LOST_ATTEMPTS
from workflows.core.run_facts import Cause, Explanation, RunFacts, WorkerSeen, swept_last

OPERATORS = "whoever runs the workers"
BROKER = "whoever runs the broker"


def running(facts: RunFacts, now: datetime) -> Explanation:
    """A worker has it, or had it until its lease ran out."""
    assert facts.lease_expires_at is not None  # the table's own constraint
    if facts.lease_ran_out(now):
        return lease_expired(facts, facts.lease_expires_at, now)
    since = f", since {moment(facts.claimed_at, now)}" if facts.claimed_at else ""
    return Explanation(
        Cause.LEASED,
        f"Worker {facts.worker} is on it {facts.place}, try {facts.tries}{since}; "
        f"its lease runs until {moment(facts.lease_expires_at, now)}.",
        "Nothing is needed.",
        facts.worker,
        {
            "worker": facts.worker,
            "since": facts.claimed_at,
            "lease_expires_at": facts.lease_expires_at,
        },
    )


def lease_expired(facts: RunFacts, at: datetime, now: datetime) -> Explanation:
    """Lost tries count, so that a step which kills its workers ends in a hold, not in a loop."""
    lost = facts.losses + 1
    where = f"Worker {facts.worker} went quiet {facts.place}"
    rests_on: dict[str, Any] = {
        "worker": facts.worker,
        "lease_expires_at": at,
        "lost_tries": lost,
        "lost_tries_allowed": MAX_LOST_ATTEMPTS,
    }
    if not facts.able:
        return no_worker(facts, where, rests_on)
    where = f"{where}; its lease ran out {on(at, now)}, {age(now - at)} ago"
    if (lack := without_word(facts, at, where, now)) is not None:
        return lack
    more = "; as many as are allowed, so it is held then" if lost >= MAX_LOST_ATTEMPTS else ""
    return Explanation(
        Cause.LEASE_EXPIRED,
        f"{where}. It is lost try {lost} of {MAX_LOST_ATTEMPTS} at this step{more}.",
        "The next sweep gives it to another worker.",
        "Romulus",
        rests_on,
    )


def ready(facts: RunFacts, now: datetime) -> Explanation:
    """It could be taken: by nobody, later, or as soon as a worker is free."""
    where = f"It is ready {facts.place}"
    if not facts.able:
        return no_worker(facts, where, {"ready_at": facts.ready_at})
    if facts.ready_at > now:
        return retry(facts, now)
    if (lack := without_word(facts, facts.ready_at, where, now)) is not None:
        return lack
    ahead = {0: "it is the next", 1: "1 run is ahead of it"}.get(
        facts.ahead, f"{facts.ahead:,} runs are ahead of it"
    )
    return Explanation(
        Cause.BACKLOG,
        f"{where}; {ahead}.",
        f"A free worker; {len(facts.able):,} have this version.",
        "Romulus",
        {
            "ready_at": facts.ready_at,
            "ahead": facts.ahead,
            "workers_with_version": len(facts.able),
            "workers_alive": len(facts.workers),
        },
    )


def retry(facts: RunFacts, now: datetime) -> Explanation:
    due = f"due {on(facts.ready_at, now)}, in {age(facts.ready_at - now)}"
    return Explanation(
        Cause.RETRY,
        f"Try {facts.tries + 1} is {due}, {facts.place}. {facts.message}".strip(),
        "Time.",
        "Romulus",
        {"ready_at": facts.ready_at, "next_try": facts.tries + 1, "message": facts.message},
    )


# --- nobody takes it --------------------------------------------------------------------------


def no_worker(facts: RunFacts, where: str, rests_on: dict[str, Any]) -> Explanation:
    wanted = f"{facts.workflow} version {facts.version}"
    workers = [{"name": worker.name, "workflows": versions_of(worker)} for worker in facts.workers]
    return Explanation(
        Cause.NO_WORKER,
        f"{where}, and none of the {len(facts.workers):,} live workers has {wanted}."
        f"{what_they_have(facts)}",
        f"Starting a worker that has {wanted}.",
        OPERATORS,
        rests_on | {"workers_alive": len(facts.workers), "workers": workers},
    )


def versions_of(worker: WorkerSeen) -> list[str]:
    return [f"{name} v{version}" for name, version in sorted(worker.workflows)]


def what_they_have(facts: RunFacts) -> str:
    """Which versions of this workflow the live workers have instead."""
    if not facts.workers:
        return ""
    versions = Counter(
        version
        for worker in facts.workers
        for name, version in worker.workflows
        if name == facts.workflow
    )
    if not versions:
        return f" None of them has any version of {facts.workflow}."
    said = [
        f"version {version} ({number:,} {'worker' if number == 1 else 'workers'})"
        for version, number in sorted(versions.items())
    ]
    return f" They have {', '.join(said)}."


def without_word(facts: RunFacts, since: datetime, where: str, now: datetime) -> Explanation | None:
    """Why nobody was told of a run that is due `since`; None: somebody was, as far as is known."""
    able = facts.able
    away = sorted(each.broker_away_since for each in able if each.broker_away_since is not None)
    if away:
        return broker_away(facts, where, away, now)
    last = swept_last(able)
    if last is None or now - since <= facts.behind_after or now - last <= facts.behind_after:
        return None
    return Explanation(
        Cause.SWEEP_BEHIND,
        f"{where}, due since {moment(since, now)}, and the sweep is behind: no live worker that "
        f"has its version has swept since {moment(last, now)}, for {age(now - last)}.",
        "A worker whose sweep works; restart those that are there. One that is free earlier "
        "takes it by itself.",
        OPERATORS,
        {
            "due_since": since,
            "swept_at": last,
            "behind_after_seconds": facts.behind_after.total_seconds(),
            "workers_with_version": len(able),
        },
    )


def broker_away(
    facts: RunFacts, where: str, away: Sequence[datetime], now: datetime
) -> Explanation:
    said_by = f"{len(away):,} of the {len(facts.able):,} live workers that have its version"
    return Explanation(
        Cause.BROKER_AWAY,
        f"{where}, and messages do not reach the broker since {moment(away[0], now)}, as "
        f"{said_by} say.",
        "The broker. As soon as it is back the next sweep sends word, and nothing is lost; a "
        "worker that is at work takes it without.",
        BROKER,
        {
            "broker_away_since": away[0],
            "workers_that_say_so": len(away),
            "workers_with_version": len(facts.able),
        },
    )


def lacks_sweep(facts: RunFacts, now: datetime) -> str:
    """Say why no sweep comes by; empty: one does."""
    last = swept_last(facts.workers)
    if last is None:
        return "no worker is alive"
    if now - last > facts.behind_after:
        return f"no live worker has swept since {moment(last, now)}"
    return ""


def sweep_moves(facts: RunFacts, does: str, now: datetime) -> tuple[str, str]:
    """What the next sweep does to the run, and whose matter it is."""
    lack = lacks_sweep(facts, now)
    if lack:
        return f"A worker whose sweep {does}: {lack}.", OPERATORS
    return f"The next sweep {does}.", "Romulus"
