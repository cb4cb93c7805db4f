"""Why a run is not moving: one sentence, what helps, and each cause that was looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

from django.urls import reverse

from workflows.core.durations import moment
from workflows.core.explain import Cause, Explanation
from workflows.core.run_facts import RunFacts
from workflows.core.states import RunState
from workflows.core.words import who
from workflows.pages import CheckedCause, Fact, Link, Why
from workflows.selectors.run_history import History
from workflows.selectors.run_parts import RunParts
from workflows.selectors.words import counted

ORDER = ["Paused", "Cancel asked", "Held", "Missing signal", "Mismatch", "Dispatch", "Backlog"]
EVENTS_LINKED = 3
LISTED = 10  # of the workers that are alive
EVER = datetime.min.replace(tzinfo=UTC)  # no time is of that day, so that each is said with its own

# What the rest of the page says already.
ELSEWHERE = frozenset({"state", "workflow", "version", "step", "number", "steps", "message"})


def why_of(
    history: History,
    facts: RunFacts,
    explained: Explanation,
    parts: RunParts,
    zone: tzinfo | None,
) -> Why:
    """Put what the run says of itself beside what other apps know about it."""
    lead, _, text = explained.sentence.partition(". ")
    unfinished = history.run.finished_at is None
    return Why(
        lead=lead if lead.endswith(".") else f"{lead}.",
        text=text,
        helps=explained.moves,
        owner=explained.owner,
        links=(*parts.links, *held_links(facts), *event_links(facts)),
        causes=causes(history, facts, explained, parts) if unfinished else (),
        facts=tuple(shown_facts(explained.facts, zone)) if unfinished else (),
    )


def held_links(facts: RunFacts) -> tuple[Link, ...]:
    """The ways to the runs that it waits for and that wait for a person."""
    return tuple(
        Link(f"Open held run …{each.id[-6:]}", reverse("run", args=[each.id]))
        for each in facts.held_children
    )


def event_links(facts: RunFacts) -> tuple[Link, ...]:
    """The ways to the events that came close to what it waits for, or are not given to it yet."""
    wait = facts.wait
    if wait is None or not wait.is_open:
        return ()
    events = [miss.event for miss in wait.near[:EVENTS_LINKED]]
    events = [wait.arrived] if wait.arrived is not None else events
    return tuple(
        Link(f"Open event …{event.id.hex[-6:]}", reverse("event", args=[event.id]))
        for event in events
    )


# --- the causes -------------------------------------------------------------------------------


def causes(
    history: History, facts: RunFacts, explained: Explanation, parts: RunParts
) -> tuple[CheckedCause, ...]:
    own = (
        held(history, facts),
        missing_signal(explained),
        backlog(explained),
        lease(history, explained),
        *wished(facts, explained),
        *away(explained),
    )
    known = {cause.name: cause for cause in (*own, *parts.causes, *came_close(facts))}
    names = [name for name in ORDER if name in known]
    return tuple(known[name] for name in [*names, *(name for name in known if name not in names)])


def held(history: History, facts: RunFacts) -> CheckedCause:
    if history.run.state == RunState.HELD:
        return CheckedCause("Held", "is", "yes: it waits for a decision")
    if facts.children is not None and facts.children.held:
        text = f"{counted(facts.children.held, 'run')} that it started, not itself"
        return CheckedCause("Held", "maybe", text)
    return CheckedCause("Held", "no", "no: nothing waits for a person")


def missing_signal(explained: Explanation) -> CheckedCause:
    match explained.cause:
        case Cause.SETTLING:
            text = "yes: the provider's answer is not known yet"
        case Cause.SLEEPING:
            text = "yes: its time has not come"
        case Cause.CHILDREN:
            text = "yes: runs that it started have not ended"
        case Cause.TURN:
            text = "yes: its turn has not come"
        case Cause.WAITING | Cause.EVENT:
            text = "yes: what it waits for has not come"
        case Cause.ARRIVED:
            text = "no: the event came, and is not processed yet"
        case Cause.AMBIGUOUS:
            text = "no: the event came, and a person says whose it is"
        case _:
            return CheckedCause("Missing signal", "no", "no: this step waits for no event")
    return CheckedCause("Missing signal", "is", text)


def came_close(facts: RunFacts) -> Iterator[CheckedCause]:
    """Events that it would have taken but for one thing: shown only where there are some."""
    if facts.wait is not None and facts.wait.near:
        text = f"{counted(len(facts.wait.near), 'event')} came close to what it waits for"
        yield CheckedCause("Mismatch", "maybe", text)


def backlog(explained: Explanation) -> CheckedCause:
    match explained.cause:
        case Cause.BACKLOG:
            return CheckedCause("Backlog", "is", "yes: it waits for a free worker")
        case Cause.NO_WORKER:
            return CheckedCause("Backlog", "is", "yes: no live worker has this version")
        case Cause.RETRY:
            return CheckedCause("Backlog", "maybe", "no: it rests before the next try")
        case _:
            return CheckedCause("Backlog", "no", "no: it is not queued")


def lease(history: History, explained: Explanation) -> CheckedCause:
    if explained.cause is Cause.LEASE_EXPIRED:
        return CheckedCause(
            "Lease lost", "is", "yes: its worker went quiet; another one takes over"
        )
    if history.lost:
        text = f"not now: lost {counted(history.lost, 'time')} earlier, each handed over"
        return CheckedCause("Lease lost", "maybe", text)
    return CheckedCause("Lease lost", "no", "no: never lost")


def wished(facts: RunFacts, explained: Explanation) -> Iterator[CheckedCause]:
    """What somebody wished for the run: shown only where somebody did."""
    if facts.cancel is not None:
        text = f"yes: by {who(facts.cancel.by)}"
        yield CheckedCause("Cancel asked", "is", text)
    stops = [facts.pause] if facts.pause else [pause.stop for pause in facts.pauses]
    if stops and facts.cancel is None:
        is_cause = explained.cause in (Cause.RUN_PAUSED, Cause.PAUSED)
        text = f"{'yes' if is_cause else 'also'}: by {who(stops[0].by)}"
        yield CheckedCause("Paused", "is" if is_cause else "maybe", text)


def away(explained: Explanation) -> Iterator[CheckedCause]:
    """What of the system itself is not there: shown only where it is the cause."""
    match explained.cause:
        case Cause.BROKER_AWAY:
            yield CheckedCause("Broker", "is", "yes: no message reaches the workers")
        case Cause.SWEEP_BEHIND:
            yield CheckedCause("Sweep", "is", "yes: nobody looks for what is due")


# --- the facts --------------------------------------------------------------------------------


def shown_facts(facts: Mapping[str, Any], zone: tzinfo | None) -> Iterator[Fact]:
    """The facts that the sentence rests on, but for those that the page shows anyway."""
    for name, value in facts.items():
        if name not in ELSEWHERE and value not in (None, "", [], ()):
            yield from fact_of(name.replace("_", " "), value, zone)


def fact_of(term: str, value: Any, zone: tzinfo | None) -> Iterator[Fact]:
    match value:
        case datetime():
            yield Fact(term, "", at=value)
        case dict():
            for name, part in value.items():
                if part not in (None, "", []):
                    yield from fact_of(f"{term}, {name}", part, zone)
        case list():
            shown = value[:LISTED]
            yield from (Fact(term, text_of(each, zone)) for each in shown)
            if len(value) > len(shown):
                yield Fact(term, f"and {len(value) - len(shown):,} more")
        case str() if term.rsplit(maxsplit=1)[-1] == "by":
            yield Fact(term, who(value))
        case _:
            yield Fact(term, text_of(value, zone))


def text_of(value: Any, zone: tzinfo | None) -> str:
    """A fact in words. Only who did something is shortened: a correlation is exact text."""
    match value:
        case dict():
            parts = {key: part for key, part in value.items() if part}
            named = (
                who(part) if key == "by" else text_of(part, zone) for key, part in parts.items()
            )
            name, *rest = named
            return f"{name}: {', '.join(rest)}" if rest else name
        case list():
            return ", ".join(text_of(each, zone) for each in value)
        case datetime():
            return moment(value, EVER.replace(tzinfo=zone))
        case _:
            return f"{value:,}" if isinstance(value, int) else str(value)
