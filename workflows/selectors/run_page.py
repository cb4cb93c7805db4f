"""One run: why it is where it is, its graph, timeline, the runs that it started, and its log."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING

from django.urls import reverse

from workflows.core.explain import explain
from workflows.core.run_facts import RunFacts, WholePause
from workflows.core.states import RunState
from workflows.core.words import who
from workflows.models import Match, Run, Wait
from workflows.pages import Filter, GraphStep, Paused, RunPage
from workflows.selectors.explanations import Known, facts_about
from workflows.selectors.paging import address
from workflows.selectors.run_approvals import with_approvals
from workflows.selectors.run_cards import lease_rows, output_cards
from workflows.selectors.run_children import (
    child_rows,
    children_of,
    link_to,
    marks_of,
    place_in_parent,
)
from workflows.selectors.run_controls import controls_of
from workflows.selectors.run_graph import graph_of
from workflows.selectors.run_history import history_of, history_rows
from workflows.selectors.run_log import FILTERS, log_page, own_entries
from workflows.selectors.run_parts import run_parts
from workflows.selectors.run_stamp import turns_at
from workflows.selectors.run_timeline import timeline_of
from workflows.selectors.run_waits import late_beside, wait_rows, waits_shown, with_waits
from workflows.selectors.run_why import why_of
from workflows.selectors.words import heading
from workflows.together import together

if TYPE_CHECKING:
    from django.contrib.auth.models import User

TRUE_SCALE = "true"
MOVING = (RunState.READY, RunState.RUNNING)


def run_page(
    run: Run,
    user: User,
    now: datetime,
    *,
    payloads: bool,
    control: bool = False,
    folded: bool = True,
    before: datetime | None = None,
    only: str = "",
    children: str = "",
) -> tuple[RunPage, datetime]:
    """The page of `run` at `now` for `user`, who may see it, its times in the zone of `now`; and
    until when it stays so while no row of it changes. A bounded number of queries.

    Args:
        payloads: this person may see its outputs too.
        control: and cancel, pause or resume it.
        before: pages the log; everything else is as it is now.
        only: narrows the log down, to one of `run_log.FILTERS`.
        children: pages the runs that it started.
    """
    asked = history_rows(run, payloads=payloads, before=before)
    counted, started, own_waits, matches, earlier, theirs, *lists = together(
        *child_rows(run, children),
        *wait_rows(run),
        *(wait_rows(run, before) if before else (Wait.objects.none(), Match.objects.none())),
        *asked.rows,
    )
    history, past = history_of(asked, lists)
    late = late_beside([*own_waits, *earlier])
    waits = waits_shown(own_waits, matches, late)
    past_waits = waits_shown(earlier, theirs, late) if before else waits
    parts = with_waits(
        run_parts(run, user, before=before, zone=now.tzinfo or UTC), waits, past_waits
    )
    parts = with_approvals(parts, history)
    facts = facts_about(run, parts, Known(own_waits, history.workers))
    past = past if before else history
    log, older = log_page(chain(own_entries(past, parts), parts.log), before, only)
    leases = lease_rows(history)
    here = Here(
        reverse("run", args=[run.pk]),
        {
            "scale": "" if folded else TRUE_SCALE,
            "log": only,
            "before": before.isoformat() if before else "",
            "children": children,
        },
    )
    parent = run.parent
    page = RunPage(
        id=run.pk,
        title=heading(run),
        state=run.state,
        workflow=run.workflow,
        version=run.version,
        step=run.step,
        number=facts.number,
        steps=facts.steps,
        visit=run.visit,
        worker=facts.worker,
        fence=run.fence,
        last_worker=leases[0].worker if leases else "",
        started_at=run.created_at,
        ended_at=run.finished_at,
        why=why_of(history, facts, explain(facts, now), parts, now.tzinfo),
        timeline=timeline_of(history, parts, now, folded=folded),
        url=here.url(),
        seen="",
        marks=marks_of(run, now),
        pauses=paused_of(facts.pauses),
        controls=controls_of(run, facts) if control else (),
        parent=link_to(parent) if parent else None,
        parent_place=place_in_parent(run, parent),
        graph=graph_of(history, parts, now),
        children=children_of(run, counted, started, now, children),
        waits=waits,
        outputs=output_cards(history, payloads=payloads),
        leases=leases,
        tries=history.tries,
        drawn=len(history.attempts),
        scales=scales(here, folded=folded),
        log=log,
        log_filters=log_filters(here, only),
        older_log_url=f"{here.url(before=older.isoformat())}#log" if older else "",
        refused=history.refused,
        moving=is_moving(facts),
    )
    until = turns_at(run, own_waits, parts, now)
    return replace(page, seen=fingerprint(page, parts.seen)), until


@dataclass(frozen=True, slots=True)
class Here:
    """Where the page is: each of its links changes one thing and keeps the rest."""

    path: str
    query: Mapping[str, str]

    def url(self, **changes: str) -> str:
        return address(self.path, {**self.query, **changes})


def scales(here: Here, *, folded: bool) -> tuple[Filter, ...]:
    return (
        Filter("Fold quiet time", here.url(scale=""), folded),
        Filter("True scale", here.url(scale=TRUE_SCALE), not folded),
    )


def log_filters(here: Here, only: str) -> tuple[Filter, ...]:
    """All, or what people look for in the log; each from its newest entry on."""
    named = {"": "All"} | {name: text for name, (text, _) in FILTERS.items()}
    current = only if only in FILTERS else ""
    return tuple(
        Filter(text, here.url(log=name, before=""), name == current) for name, text in named.items()
    )


def fingerprint(page: RunPage, seen: str) -> str:
    """Something short that changes whenever anything on the page has changed but with time."""
    shown = (
        *(page.state, page.step, page.visit, page.fence, page.why, page.leases, page.refused),
        *(page.marks, page.pauses, page.controls, page.children, page.waits),
        [(step.place, step.ways, branch_places(step)) for step in page.graph],
        seen,
    )
    return hashlib.sha256(repr(shown).encode()).hexdigest()[:16]


def branch_places(step: GraphStep) -> list[tuple[str, list[str]]]:
    return [(branch.state, [each.place for each in branch.steps]) for branch in step.branches]


def is_moving(facts: RunFacts) -> bool:
    """Whether the run, or one that it waits for, is at work or about to be."""
    if facts.children is not None:
        return facts.children.at_work > 0
    return facts.state in MOVING and not (facts.pause or facts.pauses)


def paused_of(pauses: Iterable[WholePause]) -> tuple[Paused, ...]:
    """What is paused as a whole, for a banner."""
    return tuple(
        Paused(
            f"{pause.what[0].upper()}{pause.what[1:]}",
            who(pause.stop.by),
            pause.stop.at,
            pause.stop.reason,
        )
        for pause in pauses
    )
