"""Which runs are not at rest: neither over and seen by their parent, nor held for a person, nor
waiting for one that is.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from reconciliation.models import Operation
from workflows.core.states import FINAL_RUN_STATES, RunState
from workflows.models import Run
from workflows.selectors import explain_run

UNSEEN = "Its parent has not seen its end."
# So many say why: it takes some questions each, and nobody reads a thousand.
ASKED = 20


@dataclass(frozen=True)
class Restless:
    """A run that something should still move or see, and what it says of itself."""

    run: UUID
    workflow: str
    state: str
    step: str
    why: str


def restless() -> list[Restless]:
    """Return the runs that are not at rest, and what the first say of themselves (promise P12)."""
    unfinished = list(Run.objects.exclude(state__in=FINAL_RUN_STATES).order_by("pk"))
    due = set(Operation.objects.filter(due_at__isnull=False).values_list("run_id", flat=True))
    resting = at_rest(unfinished, due)
    going_on = [run for run in unfinished if run.pk not in resting]
    return [
        *(
            Restless(run.pk, run.workflow, run.state, run.step, said_by(run) if n < ASKED else "")
            for n, run in enumerate(going_on)
        ),
        *(
            Restless(run.pk, run.workflow, run.state, run.step, UNSEEN)
            for run in Run.objects.filter(
                parent__isnull=False, state__in=FINAL_RUN_STATES, end_seen_at=None
            )
        ),
    ]


def said_by(run: Run) -> str:
    return explain_run(run).sentence


def at_rest(unfinished: list[Run], due: set[UUID]) -> set[UUID]:
    """Those that are held, and those that wait for children of whom the unfinished are at rest."""
    resting = {run.pk for run in unfinished if run.state == RunState.HELD and run.pk not in due}
    children: dict[UUID, list[UUID]] = {}
    for run in unfinished:
        if run.parent_id is not None:
            children.setdefault(run.parent_id, []).append(run.pk)
    while True:
        more = {
            run.pk
            for run in unfinished
            if run.state == RunState.WAITING
            and run.pk not in resting
            and children.get(run.pk)
            and resting.issuperset(children[run.pk])
        }
        if not more:
            return resting
        resting |= more
