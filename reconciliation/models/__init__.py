"""The ledger and what steers it. Append-only where promise P8 says so, by triggers (migrations)."""

from __future__ import annotations

from reconciliation.models.audit import AuditEntry
from reconciliation.models.decision import Decision
from reconciliation.models.decision_point import DecisionPoint
from reconciliation.models.dispatch import DispatchStop
from reconciliation.models.draft import DecisionDraft
from reconciliation.models.evidence import Evidence
from reconciliation.models.hold import Hold
from reconciliation.models.notification import Channel, Delivery, Digest, Message, Notification
from reconciliation.models.operation import Operation
from reconciliation.models.profile import Profile
from reconciliation.models.proposal import DecisionProposal, ProposalEnd
from reconciliation.models.provider import ContractVersion, LookUpPace, Provider
from reconciliation.models.queue import ReviewQueue
from reconciliation.models.rehearsal import Rehearsal, Sandbox
from reconciliation.models.reset import PasswordReset
from reconciliation.models.review_work import (
    BulkAction,
    BulkItem,
    CaseNote,
    Reminder,
    SavedView,
)
from reconciliation.models.rota import Shift
from reconciliation.models.transmission import Transmission

__all__ = [
    "AuditEntry",
    "BulkAction",
    "BulkItem",
    "CaseNote",
    "Channel",
    "ContractVersion",
    "Decision",
    "DecisionDraft",
    "DecisionPoint",
    "DecisionProposal",
    "Delivery",
    "Digest",
    "DispatchStop",
    "Evidence",
    "Hold",
    "LookUpPace",
    "Message",
    "Notification",
    "Operation",
    "PasswordReset",
    "Profile",
    "ProposalEnd",
    "Provider",
    "Rehearsal",
    "Reminder",
    "ReviewQueue",
    "Sandbox",
    "SavedView",
    "Shift",
    "Transmission",
]
