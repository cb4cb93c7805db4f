"""The tables of the execution record. State columns change only through `services`."""

from __future__ import annotations

from workflows.models.attempt import Attempt
from workflows.models.event import Event
from workflows.models.event_source import EventSource, RefusalCount, SourceSecret
from workflows.models.pause import Pause
from workflows.models.run import Run
from workflows.models.tenant import Tenant
from workflows.models.wait import Match, Wait
from workflows.models.worker import Worker

__all__ = [
    "Attempt",
    "Event",
    "EventSource",
    "Match",
    "Pause",
    "RefusalCount",
    "Run",
    "SourceSecret",
    "Tenant",
    "Wait",
    "Worker",
]
