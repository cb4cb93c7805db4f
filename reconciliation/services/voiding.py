"""Ending what is proposed and can be confirmed no more, though nobody comes to do it.

So a case leaves the view of those that wait for a second person, and whoever proposed hears of it.
"""

from __future__ import annotations

from uuid import UUID

import structlog
from django.db import transaction

from reconciliation.core.states import HoldState
from reconciliation.services.locking import locked
from reconciliation.services.offers import ground_of
from reconciliation.services.proposals import end_if_void
from workflows.failpoints import failpoint

log = structlog.get_logger(__name__)


def end_what_is_void(hold_id: UUID) -> bool:
    """End the open proposal of a hold, if it is void for good; False when it is not.

    While dispatch is stopped it cannot be confirmed either, but may be again: that voids nothing.
    One that cannot be looked at is logged, and keeps no other waiting.
    """
    failpoint("before_void")
    try:
        with transaction.atomic():
            hold = locked(hold_id)
            is_void = hold.state == HoldState.OPEN and bool(
                end_if_void(ground_of(hold, whatever_stops=True))
            )
    except Exception:
        log.exception("proposal.not_looked_at", hold=str(hold_id))
        return False
    failpoint("after_void")
    return is_void
