"""Which attempt this thread works on, for its log lines: setting it costs nothing per step."""

from __future__ import annotations

from collections.abc import MutableMapping
from contextvars import ContextVar
from typing import Any, NamedTuple
from uuid import UUID


class AtWork(NamedTuple):
    run: UUID
    attempt: UUID
    step: str


at_work: ContextVar[AtWork | None] = ContextVar("at_work", default=None)


def add_at_work(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """A structlog processor: add run, attempt and step, where the event does not name them."""
    here = at_work.get()
    if here is not None:
        event.setdefault("run", str(here.run))
        event.setdefault("attempt", str(here.attempt))
        event.setdefault("step", here.step)
    return event
