"""What is paused as a whole: workflows and tenants. Claims ask the database each time.

A worker that is in the middle of a run asks here before it goes on to the next step, so that the
steady step stays one statement: what it knows is at most a second old.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from uuid import UUID

from workflows.models import Pause

FRESH_SECONDS = 1.0

_lock = threading.Lock()
_known: frozenset[tuple[str, UUID | None]] = frozenset()
_read_at = 0.0


def is_paused(workflow: str, tenant: UUID) -> bool:
    """Whether runs of `workflow` for `tenant` are to stop at their next step."""
    known = lately()
    return bool(known) and not known.isdisjoint(
        ((workflow, None), ("", tenant), (workflow, tenant))
    )


def going_on(pairs: Sequence[tuple[str, int]]) -> Sequence[tuple[str, int]]:
    """Those of `pairs` whose workflow is not paused for everybody.

    The database would skip their runs too, one by one: a long backlog of a paused workflow would
    slow all others down. (What of a tenant is paused `next_due_by_tenant` steps over.)
    """
    known = lately()
    return [pair for pair in pairs if (pair[0], None) not in known] if known else pairs


def of_a_tenant() -> bool:
    """Whether anything of a tenant is paused, alone or for one workflow."""
    return any(tenant for _, tenant in lately())


def lately() -> frozenset[tuple[str, UUID | None]]:
    global _known, _read_at
    now = time.monotonic()
    if now - _read_at < FRESH_SECONDS:
        return _known
    with _lock:
        if now - _read_at >= FRESH_SECONDS:
            _known = frozenset(Pause.objects.values_list("workflow", "tenant"))
            _read_at = now
        return _known


def forget() -> None:
    """Read anew at the next question: this process has just changed something."""
    global _read_at
    _read_at = 0.0
