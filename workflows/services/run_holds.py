"""What happens when a run is held for a person: whoever keeps the review queues is told.

In the same transaction as the move, so that no run is ever held without a hold. The app that
keeps the queues registers itself when it is ready; this app never imports it.
"""

from __future__ import annotations

from collections.abc import Callable

from workflows.services.claims import Claim

HoldOpener = Callable[[Claim, str, str], None]

_openers: list[HoldOpener] = []


def register_hold_opener(opener: HoldOpener) -> None:
    """Let `opener(claim, reason, message)` keep a hold for each run that is held."""
    _openers[:] = [opener]


def open_run_hold(claim: Claim, reason: str, message: str) -> None:
    for opener in _openers:
        opener(claim, reason, message)
