"""What a run has open elsewhere, which counts before it may end by somebody's wish, or move to a
later version.

The app that keeps operations and holds registers itself when it is ready; this app never imports
it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from workflows.core.standing import KnownOperation
from workflows.models import Run
from workflows.services.waits import cancel_open


class Open(Protocol):
    """What another app keeps about runs."""

    def unsettled(self, runs: Collection[UUID]) -> Mapping[UUID, str]:
        """Say in a few words what of each of `runs` must be settled first; no word: nothing."""

    def close(self, runs: Mapping[UUID, str]) -> None:
        """`runs` end now, in this transaction, each by the wish of whom it is mapped to: close what
        was only meant, and what waits."""

    def operations(self, runs: Collection[UUID]) -> Mapping[UUID, Sequence[KnownOperation]]:
        """Of each of `runs` that has any: the writes that are not settled, and those of the step
        and visit at which it stands."""

    def close_holds(self, run: UUID, by: str, why: str) -> None:
        """`run` goes on without a decision, in this transaction: close what it was held for."""


def asked_by(run: UUID) -> str:
    """Who asked for the end of `run`."""
    return Run.objects.values_list("cancel_asked_by", flat=True).get(pk=run)


def why_cancelled(by: str) -> dict[str, str]:
    return {"reason": "cancelled", "message": f"Cancelled by {by}."}


_registered: list[Open] = []


def register_open(kept: Open) -> None:
    _registered[:] = [kept]


def unsettled(run: UUID) -> str:
    """Return what of `run` has to be settled first, in words for people; empty for nothing."""
    return unsettled_of([run]).get(run, "")


def unsettled_of(runs: Collection[UUID]) -> Mapping[UUID, str]:
    """`unsettled` of many: those without anything to settle are left out."""
    found: dict[UUID, str] = {}
    for each in _registered:
        found.update(each.unsettled(runs))
    return found


def close_all(runs: Mapping[UUID, str]) -> None:
    """Close what is open of runs that end now, in the caller's transaction.

    All of them in one call: when it comes back the audit record may be locked, which is the last.

    Args:
        runs: with who asked for the end of each.
    """
    cancel_open(runs.keys())
    for each in _registered:
        each.close(runs)


def operations_of(runs: Collection[UUID]) -> Mapping[UUID, Sequence[KnownOperation]]:
    """Return the writes that bind each of `runs` to where it stands; those without any are not
    among them. One question for any number of runs."""
    return next((each.operations(runs) for each in _registered), {})


def close_holds(run: UUID, by: str, why: str) -> None:
    """Close the holds of a run that goes on without a decision, in the caller's transaction."""
    for each in _registered:
        each.close_holds(run, by, why)
