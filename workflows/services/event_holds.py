"""What happens when more than one wait could take an event: the source's owner is asked.

In the transaction that stores the event, so that no event is ever ambiguous without a hold; and
the hold is closed in the transaction that gives the event to a wait or dismisses it. The app that
keeps the review queues registers itself when it is ready; this app never imports it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol
from uuid import UUID


class EventHolds(Protocol):
    """Whoever keeps holds of events."""

    def open(self, event: UUID, tenant: UUID, message: str) -> None:
        """Keep a hold for `event`, unless one is open."""

    def close(self, events: Collection[UUID], why: str, by: str) -> None:
        """Close the open holds of `events`, as many as there are."""


_kept: list[EventHolds] = []


def register_event_holds(keeper: EventHolds) -> None:
    _kept[:] = [keeper]


def open_hold(event: UUID, tenant: UUID, _source: UUID, candidates: Collection[UUID]) -> None:
    """Ask a person which of the waits `candidates` is to have `event`."""
    message = (
        f"{len(candidates)} open waits could take this event, and not all of them share theirs. "
        "None was picked."
    )
    for keeper in _kept:
        keeper.open(event, tenant, message)


def close_holds(events: Collection[UUID], why: str, by: str = "") -> None:
    """The events need nobody any more; `why` in a few words, `by` whom where it was a person."""
    for keeper in _kept:
        keeper.close(events, why, by)
