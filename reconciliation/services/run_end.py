"""What of a run must be settled before it may be cancelled or move to a later version, and what is
closed when it is, or does."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from uuid import UUID

from django.db.models import F, Q
from django.db.models.functions import Now

from reconciliation.core.facts import CONFLICT_LATER
from reconciliation.core.states import SETTLED, HoldState, OperationState
from reconciliation.models import Hold, Operation
from reconciliation.services.audit import add_entry
from reconciliation.services.holds import ensure_moved
from reconciliation.services.proposals import end_as_void
from workflows.core.standing import KnownOperation


class OpenParts:
    """The operations and holds of a run, for `workflows.services.settling`."""

    def unsettled(self, runs: Collection[UUID]) -> dict[UUID, str]:
        """Name the first write of each of `runs` that may have had an effect and is not settled."""
        sent = Operation.objects.filter(run__in=runs).exclude(
            state__in=[*SETTLED, OperationState.INTENDED]
        )
        return dict(sent.order_by("-pk").values_list("run_id", "summary"))

    def close(self, runs: Mapping[UUID, str]) -> None:
        """Give up what was only meant, and close the holds: `runs` end in this transaction."""
        meant = Operation.objects.filter(run__in=runs, state=OperationState.INTENDED)
        given_up = list(meant.order_by("pk"))
        for operation in given_up:
            ensure_moved(Operation.objects.move(operation, OperationState.ABANDONED, due_at=None))
        holds = locked_holds(runs.keys())
        for operation in given_up:
            subject, by = f"operation:{operation.pk}", runs[operation.run_id]
            add_entry("system", "abandoned: its run was cancelled", subject, {"by": by})
        close_holds(holds, runs, "the run was cancelled")

    def operations(self, runs: Collection[UUID]) -> dict[UUID, list[KnownOperation]]:
        """The writes of `runs` that are not settled, and those of where each run stands."""
        here = Q(step=F("run__step"), visit=F("run__visit"))
        rows = Operation.objects.filter(~Q(state__in=SETTLED) | here, run__in=runs).order_by("pk")
        found: dict[UUID, list[KnownOperation]] = {}
        for row in rows.only("run_id", "step", "visit", "summary", "state"):
            settled = OperationState(row.state).is_settled
            known = KnownOperation(row.step, row.visit, row.summary, settled)
            found.setdefault(row.run_id, []).append(known)
        return found

    def close_holds(self, run: UUID, by: str, why: str) -> None:
        """Close the holds of the run itself; what is held of an operation stays with it."""
        close_holds(locked_holds([run], operation=None), {run: by}, why)


def locked_holds(runs: Collection[UUID], **which: None) -> list[Hold]:
    """The open holds of `runs`, locked: all of them before the first entry of the audit record, for
    which whoever has one of them may be waiting."""
    holds = Hold.objects.filter(run__in=runs, state=HoldState.OPEN, **which)
    # What contradicts a settled operation is to be looked at, however its run ends.
    holds = holds.exclude(reason=CONFLICT_LATER).order_by("run_id", "pk")
    return list(holds.select_for_update(no_key=True))


def close_holds(holds: Sequence[Hold], asked_by: Mapping[UUID, str], why: str) -> None:
    """Close `holds`, which are locked, on record."""
    if not holds:
        return
    closing = Hold.objects.filter(pk__in=[hold.pk for hold in holds])
    end_as_void(closing, f"The hold was closed: {why}.")
    closing.update(state=HoldState.CLOSED, closed_at=Now())
    for run, of_run in groupby(holds, attrgetter("run_id")):
        detail = {"by": asked_by[run], "holds": [str(hold.pk) for hold in of_run]}
        add_entry("system", f"hold closed: {why}", f"run:{run}", detail)
