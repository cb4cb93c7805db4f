"""One run: why it is where it is, its timeline, outputs, leases and log."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from django.urls import reverse

from workflows.core.durations import age, took
from workflows.core.explain import explain
from workflows.core.states import AttemptState, RunState
from workflows.models import Attempt, Run, StepOutput
from workflows.pages import Fact, GraphStep, LeaseRow, OutputCard, RunPage, Why
from workflows.selectors.explanations import facts_about
from workflows.selectors.paging import address
from workflows.selectors.run_history import OUTPUT_READ, History, StepSeen, history_of
from workflows.selectors.run_log import log_page, own_entries
from workflows.selectors.run_parts import RunParts, run_parts
from workflows.selectors.run_timeline import timeline_of
from workflows.selectors.run_why import why_of
from workflows.selectors.words import counted, label_of, title_of

if TYPE_CHECKING:
    from django.contrib.auth.models import User

FACTS_SHOWN = 6
TEXT_SHOWN = 200


def run_page(
    run: Run,
    user: User,
    now: datetime,
    *,
    payloads: bool,
    folded: bool = True,
    before: datetime | None = None,
) -> RunPage:
    """The page of `run` at `now` for `user`, who may see it; `payloads`: its outputs too.

    `before` pages the log; everything else is as it is now. A bounded number of queries.
    """
    history = history_of(run, payloads=payloads)
    parts = run_parts(run, user, before=before)
    why = why_of(history, explain(facts_about(run, owner=parts.owner), now), parts)
    past = history if before is None else history_of(run, payloads=False, before=before)
    log, older = log_page(chain(own_entries(past), parts.log), before)
    leases = tuple(lease_rows(history))
    url = reverse("run", args=[run.pk])
    return RunPage(
        id=run.pk,
        title=heading(run),
        state=run.state,
        workflow=run.workflow,
        version=run.version,
        step=run.step,
        number=history.number,
        steps=len(history.steps),
        worker=history.workers.get(run.lease_owner, "") if run.lease_owner else "",
        fence=run.fence,
        last_worker=leases[0].worker if leases else "",
        started_at=run.created_at,
        ended_at=run.finished_at,
        why=why,
        timeline=timeline_of(history, parts, now, folded=folded),
        seen=fingerprint(run, why, leases, parts),
        graph=tuple(graph_step(history, step, parts, now) for step in history.steps),
        outputs=tuple(output_card(output, payloads=payloads) for output in history.outputs),
        leases=leases,
        log=log,
        older_log_url=f"{address(url, {'before': older.isoformat()})}#log" if older else "",
        refused=sum(lease.state == AttemptState.SUPERSEDED for lease in leases),
    )


def heading(run: Run) -> str:
    label = label_of(run)
    return f"{title_of(run)}, {label}" if label else title_of(run)


def fingerprint(run: Run, why: Why, leases: tuple[LeaseRow, ...], parts: RunParts) -> str:
    """Something short that changes whenever anything on the page has changed."""
    shown = repr((run.state, run.step, run.visit, run.fence, why, leases, parts.seen))
    return hashlib.sha256(shown.encode()).hexdigest()[:16]


# --- the graph --------------------------------------------------------------------------------


def graph_step(history: History, step: StepSeen, parts: RunParts, now: datetime) -> GraphStep:
    run = history.run
    url = parts.urls.get(step.name, "")
    if step.name == run.step and run.state != RunState.COMPLETED:
        return GraphStep(step.name, step.title, "here", note_here(history, step, now), url)
    if step.name in history.done:
        return GraphStep(step.name, step.title, "done", note_done(history, step), url)
    note = "waits" if run.finished_at is None else "never started"
    return GraphStep(step.name, step.title, "todo", note, url)


def note_here(history: History, step: StepSeen, now: datetime) -> str:
    tries = history.of_step(step.name)
    run = history.run
    if run.state in (RunState.HELD, RunState.WAITING) and tries and tries[-1].ended_at:
        return f"{run.state} {age(now - tries[-1].ended_at)}"
    return f"{run.state}, try {tries[-1].number}" if tries else run.state


def note_done(history: History, step: StepSeen) -> str:
    tries = history.of_step(step.name)
    if not tries or tries[-1].ended_at is None:
        return ""
    whole = took(tries[-1].ended_at - tries[0].claimed_at)
    return f"{counted(len(tries), 'try', 'tries')}, {whole}" if len(tries) > 1 else whole


# --- outputs and leases -----------------------------------------------------------------------


def output_card(output: StepOutput, *, payloads: bool) -> OutputCard:
    return OutputCard(
        step=output.step,
        fence=output.attempt.fence,
        number=output.attempt.number,
        committed_at=output.created_at,
        facts=tuple(output_facts(output)) if payloads else (),
        hidden=not payloads,
    )


def output_facts(output: StepOutput) -> list[Fact]:
    content: Any = output.content  # type: ignore[attr-defined]  # annotated in run_history
    size: int = output.size  # type: ignore[attr-defined]
    if size > OUTPUT_READ:
        return [Fact("value", f"{size:,} bytes stored: too much to show here")]
    if content is None:
        return []
    if not isinstance(content, dict):
        return [Fact("value", shortened(content))]
    shown = list(content.items())[:FACTS_SHOWN]
    facts = [Fact(shortened(name), shortened(value)) for name, value in shown]
    more = len(content) - len(shown)
    return [*facts, Fact("and", f"{counted(more, 'more value')}")] if more else facts


def shortened(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= TEXT_SHOWN else text[: TEXT_SHOWN - 1] + "…"


def lease_rows(history: History) -> list[LeaseRow]:
    return [
        LeaseRow(
            fence=attempt.fence,
            worker=history.worker(attempt),
            step=attempt.step,
            number=attempt.number,
            state=attempt.state,
            started_at=attempt.claimed_at,
            ended_at=attempt.ended_at,
            error=attempt.error or handed_back(history, attempt),
        )
        for attempt in reversed(history.attempts)
    ]


def handed_back(history: History, attempt: Attempt) -> str:
    stopped = attempt.state == AttemptState.COMMITTED and attempt.pk not in history.committed
    return "stopped without an output" if stopped else ""
