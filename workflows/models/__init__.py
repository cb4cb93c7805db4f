"""The tables of the execution record. State columns change only through `services`."""

from __future__ import annotations

from workflows.models.attempt import Attempt
from workflows.models.authorisation import AuthorisationRecord
from workflows.models.event import Event
from workflows.models.event_source import EventSource, RefusalCount, SourceSecret
from workflows.models.pause import Pause
from workflows.models.policy import PolicyVersion
from workflows.models.proposal import Approval, Proposal
from workflows.models.run import Run
from workflows.models.service_account import AccessToken, ServiceAccount
from workflows.models.tenant import Tenant
from workflows.models.wait import Match, Wait
from workflows.models.worker import Worker

__all__ = [
    "AccessToken",
    "Approval",
    "Attempt",
    "AuthorisationRecord",
    "Event",
    "EventSource",
    "Match",
    "Pause",
    "PolicyVersion",
    "Proposal",
    "RefusalCount",
    "Run",
    "ServiceAccount",
    "SourceSecret",
    "Tenant",
    "Wait",
    "Worker",
]
