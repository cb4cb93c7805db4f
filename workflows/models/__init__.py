"""The tables of the execution record. State columns change only through `services`."""

from __future__ import annotations

from workflows.models.attempt import Attempt
from workflows.models.pause import Pause
from workflows.models.run import Run
from workflows.models.tenant import Tenant
from workflows.models.worker import Worker

__all__ = ["Attempt", "Pause", "Run", "Tenant", "Worker"]
