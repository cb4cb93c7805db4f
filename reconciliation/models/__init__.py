"""The ledger and what steers it. Append-only where promise P8 says so, by triggers (migrations)."""

from __future__ import annotations

from reconciliation.models.audit import AuditEntry
from reconciliation.models.decision import Decision
from reconciliation.models.dispatch import DispatchStop
from reconciliation.models.draft import DecisionDraft
from reconciliation.models.evidence import Evidence
from reconciliation.models.hold import Hold
from reconciliation.models.operation import Operation
from reconciliation.models.proposal import DecisionProposal, ProposalEnd
from reconciliation.models.provider import ContractVersion, Provider
from reconciliation.models.queue import ReviewQueue
from reconciliation.models.rehearsal import Rehearsal, Sandbox
from reconciliation.models.transmission import Transmission

__all__ = [
    "AuditEntry",
    "ContractVersion",
    "Decision",
    "DecisionDraft",
    "DecisionProposal",
    "DispatchStop",
    "Evidence",
    "Hold",
    "Operation",
    "ProposalEnd",
    "Provider",
    "Rehearsal",
    "ReviewQueue",
    "Sandbox",
    "Transmission",
]
