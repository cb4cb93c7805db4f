"""What of a run must be settled before it may be cancelled or move to a later version, and what is
closed when it is, or does."""

from __future__ import annotations

from collections.abc import Collection
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

    def close(self, runs: Collection[UUID], by: str) -> None:
        """Give up what was only meant, and close the holds: `runs` end in this transaction."""
        meant = Operation.objects.filter(run__in=runs, state=OperationState.INTENDED)
        for operation in meant.order_by("pk"):
            ensure_moved(Operation.objects.move(operation, OperationState.ABANDONED, due_at=None))
            subject = f"operation:{operation.pk}"
            add_entry("system", "abandoned: its run was cancelled", subject, {"by": by})
        close_open_holds(runs, by, "the run was cancelled")

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
        close_open_holds([run], by, why, Q(operation=None))


def close_open_holds(runs: Collection[UUID], by: str, why: str, which: Q | None = None) -> None:
    holds = Hold.objects.filter(which or Q(), run__in=runs, state=HoldState.OPEN)
    # What contradicts a settled operation is to be looked at, however its run ends.
    holds = holds.exclude(reason=CONFLICT_LATER)
    closed: dict[UUID, list[str]] = {}
    for run, hold in holds.order_by("run_id", "pk").values_list("run_id", "pk"):
        closed.setdefault(run, []).append(str(hold))
    if closed:
        end_as_void(holds, f"The hold was closed: {why}.")
        holds.update(state=HoldState.CLOSED, closed_at=Now())
    for run, pks in closed.items():
        add_entry("system", f"hold closed: {why}", f"run:{run}", {"by": by, "holds": pks})
