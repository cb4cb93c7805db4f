"""Runs that a run started and waits for: beginning them, seeing their ends, waking their parent.

A child's end is an event of its parent: the child's own row says that it has ended and was not
seen yet, so it cannot be lost. So is that it is held for a person, since it then takes up no place
of those that may run at once. Whoever ends or holds a child may look at the parent at once; the
sweep looks for what nobody has seen. Lock order: parent, then child.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from django.db import transaction
from django.db.models import Count, QuerySet
from django.db.models.fields.json import KT
from django.db.models.functions import Now

from workflows.core.definitions import Step
from workflows.core.joining import Ends, Joined, JoinPolicy, ends_of, join, may_begin, waiting_for
from workflows.core.states import FINAL_RUN_STATES, RunState
from workflows.failpoints import failpoint
from workflows.models import Run
from workflows.registry import registry
from workflows.services import hints
from workflows.services.claims import of_pairs
from workflows.sql import fetch

QUEUED = {"reason": "turn", "message": "It waits for its turn: so many at once are not allowed."}
STOPPED = [*FINAL_RUN_STATES, RunState.HELD]
BATCH = 100
LATE = 1000  # ends that nobody waits for, noted in one sweep


def children_of(run: UUID, step: str, visit: int) -> QuerySet[Run]:
    return Run.objects.filter(parent=run, parent_step=step, parent_visit=visit)


def ends_at(run: UUID, step: str, visit: int) -> Ends:
    """Count the children of one step and visit: one query."""
    counted = (
        children_of(run, step, visit)
        .values_list("state", KT("failure__reason"))
        .annotate(number=Count("pk"))
    )
    counts: dict[tuple[str, bool], int] = {}
    for state, reason, number in counted:
        key = (state, state == RunState.WAITING and reason == QUEUED["reason"])
        counts[key] = counts.get(key, 0) + number
    return ends_of(counts)


def policy_of(step: Step) -> JoinPolicy:
    return JoinPolicy(step.children.join) if step.children else JoinPolicy.EVERY


def at_once_of(step: Step) -> int | None:
    return step.children.at_once if step.children else None


def look_at_parent(parent: UUID | None) -> None:
    """A child has ended, or is held: let the next ones begin, and wake its parent if it goes on.

    Does nothing when somebody else looks at this moment; the sweep looks again.
    """
    if parent is None:
        return
    failpoint("before_look")
    with transaction.atomic():
        locked = Run.objects.select_for_update(skip_locked=True, no_key=True)
        run = locked.filter(pk=parent, state=RunState.WAITING).first()
        if run is not None:
            look(run)
    failpoint("after_look")


def look(run: Run) -> None:
    """Look at the children of a waiting run that the caller has locked."""
    if not registry.has(run.workflow, run.version):
        return  # a process that has its code looks
    step = registry.get(run.workflow, run.version).steps.get(run.step)
    if step is None or step.kind not in ("children", "parallel"):
        return
    stopped = children_of(run.pk, run.step, run.visit).filter(state__in=STOPPED)
    stopped.filter(end_seen_at=None).update(end_seen_at=Now())
    ends = ends_at(run.pk, run.step, run.visit)
    if join(policy_of(step), ends) is not Joined.NOT_YET:
        Run.objects.move(run, RunState.READY)
        hints.run_is_ready(run.pk)
        return
    beginning = may_begin(ends, at_once_of(step))
    begin_next(run, beginning)
    ends = replace(ends, queued=ends.queued - beginning, at_work=ends.at_work + beginning)
    failure = {"reason": "children", "message": waiting_for(ends)}
    Run.objects.unchanged(run).update(failure=failure)


def begin_next(run: Run, number: int) -> None:
    """Let the next `number` children begin, in the order in which they were named."""
    if not number:
        return
    queue = children_of(run.pk, run.step, run.visit).filter(
        state=RunState.WAITING, failure__reason=QUEUED["reason"]
    )
    for child in queue.order_by("parent_index")[:number]:
        if Run.objects.move(child, RunState.READY, failure=None):
            hints.run_is_ready(child.pk)


def see_ends() -> int:
    """A duty of the sweep: look at parents whose children have ended, or are held, unseen."""
    known = of_pairs(registry.pairs())
    parents = [row["id"] for row in fetch("unseen_ends", known | {"batch": BATCH})]
    for parent in parents:
        look_at_parent(parent)
    failpoint("before_late_ends")
    late = fetch("see_late_ends", {"batch": LATE})
    failpoint("after_late_ends")
    return len(parents) + len(late)


def ask_to_end(children: QuerySet[Run], by: str) -> None:
    """Ask for the end of those that are not over; the sweep ends them.

    Locked in the order of their IDs, as whoever gives an event to several runs locks them.
    """
    going_on = children.filter(finished_at=None, cancel_asked_at=None)
    locked = going_on.order_by("pk").select_for_update(no_key=True).values("pk")
    Run.objects.filter(pk__in=locked, finished_at=None, cancel_asked_at=None).update(
        cancel_asked_at=Now(), cancel_asked_by=by
    )
