"""The event log of a run: what happened, newest first, a page at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from workflows.core.states import AttemptState, RunState
from workflows.core.words import who
from workflows.models import Attempt
from workflows.pages import LogEntry
from workflows.selectors.run_history import WENT_QUIET, History, left_output
from workflows.selectors.run_parts import RunParts
from workflows.selectors.words import title_of, try_of
from workflows.services.migrations import NOBODY

LOG_ROWS = 100

# What the log can be narrowed down to, by the kinds of its entries.
FILTERS = {
    "sends": ("Sends", frozenset({"operation", "transmission", "evidence", "hold"})),
    "leases": ("Leases", frozenset({"attempt", "step", "entry", "run"})),
    "waits": ("Waits", frozenset({"wait", "event"})),
    "people": ("People", frozenset({"decision", "stop", "answer"})),
}

ENDS = {
    RunState.COMPLETED: "Every step is committed",
    RunState.FAILED: "The run failed",
    RunState.CANCELLED: "The run was cancelled",
}


def log_page(
    entries: Iterable[LogEntry], before: datetime | None, only: str = ""
) -> tuple[tuple[LogEntry, ...], datetime | None]:
    """Return a page of `entries`, newest first, and from where on older ones are asked for.

    Entries of one moment stay together, so that none falls between two pages. `only` names one of
    FILTERS; any other text shows all.
    """
    _, kinds = FILTERS.get(only, ("", None))
    sorted_entries = sorted(
        (
            entry
            for entry in entries
            if (before is None or entry.at < before) and (kinds is None or entry.kind in kinds)
        ),
        # Of one moment: an end before the next begin, and the end of the run last.
        key=lambda entry: (entry.at, entry.fence or 0, entry.kind == "run"),
        reverse=True,
    )
    cut = min(LOG_ROWS, len(sorted_entries))
    while 0 < cut < len(sorted_entries) and sorted_entries[cut].at == sorted_entries[cut - 1].at:
        cut += 1
    older = sorted_entries[cut - 1].at if cut < len(sorted_entries) else None
    return tuple(sorted_entries[:cut]), older


def own_entries(history: History, parts: RunParts) -> Iterator[LogEntry]:
    """What the execution record itself knows."""
    run = history.run
    text = f"{title_of(run)} started, at step {history.steps[0].name}"
    yield LogEntry(run.created_at, "entry", "started", text, "Romulus")
    yield from claims(history, history.attempts)
    for attempt in history.attempts:
        if attempt.ended_at is not None:
            yield end_of(history, attempt, attempt.ended_at)
    if run.cancel_asked_at is not None:
        reason = f": {parts.why_cancelled}" if parts.why_cancelled else ""
        text, by = f"Its end was asked for{reason}", who(run.cancel_asked_by)
        yield LogEntry(run.cancel_asked_at, "stop", "cancelling", text, by)
    if run.finished_at is not None:
        failure = (run.failure or {}).get("message", "")
        text = ENDS[RunState(run.state)] + (f": {failure}" if failure else "")
        yield LogEntry(run.finished_at, "run", run.state, text, "Romulus", run.fence)


def claims(history: History, attempts: Sequence[Attempt]) -> Iterator[LogEntry]:
    before: Attempt | None = None
    for attempt in attempts:
        worker = history.worker(attempt)
        if before is not None and AttemptState(before.state) in WENT_QUIET:
            text = (
                f"{worker} took the lease, fence {attempt.fence}; writes under fence "
                f"{before.fence} are refused from here"
            )
            yield LogEntry(attempt.claimed_at, "entry", "handover", text, worker, attempt.fence)
        if attempt.worker == NOBODY:
            continue
        text = f"{attempt.step} begun, {try_of(attempt)}"
        yield LogEntry(attempt.claimed_at, "attempt", "running", text, worker, attempt.fence)
        before = attempt


def end_of(history: History, attempt: Attempt, at: datetime) -> LogEntry:
    worker = history.worker(attempt)
    state = AttemptState(attempt.state)
    match state:
        case AttemptState.LOST:
            text, by = f"{attempt.step} {try_of(attempt)} lost: {attempt.error}", "Romulus"
        case AttemptState.SUPERSEDED:
            text = f"A late write from {worker} was refused; it changed nothing{kept(attempt)}"
            return LogEntry(at, "entry", "refused", text, "Romulus", attempt.fence)
        case AttemptState.FAILED:
            text, by = f"{attempt.step} {try_of(attempt)} failed: {attempt.error}", worker
        case _ if attempt.worker == NOBODY:
            text, by = f"The output of {attempt.step} was carried over: {attempt.error}", worker
        case _ if left_output(attempt):
            text, by = f"{attempt.step} committed", worker
        case _:
            text, by = f"{attempt.step} stopped without an output; lease released", worker
            return LogEntry(at, "step", "blocked", text, by, attempt.fence)
    return LogEntry(at, "attempt", state.value, text, by, attempt.fence)


def kept(attempt: Attempt) -> str:
    """What became of what a refused attempt brought."""
    return "; what it brought is kept as evidence" if attempt.output_form else ""
