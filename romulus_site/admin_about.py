"""What each kind of row in the admin is, in one sentence, for whoever sees it the first time."""

from __future__ import annotations

from typing import Any

ABOUT = {
    "auth.group": "People with the same rights: what a group holds is held by all in it.",
    "auth.user": "Accounts of people. What each may do is given on the page of the object.",
    "reconciliation.auditentry": "Who did what, for good; every entry is chained to those before.",
    "reconciliation.channel": "How a queue's people, or one person, are told: e-mail, webhook, "
    "Slack.",
    "reconciliation.contractversion": "What a provider documents about repeats, look-ups and "
    "rejections. Never changed; a new version is added.",
    "reconciliation.decision": "What people have decided, with what they were shown.",
    "reconciliation.decisionpoint": "Systems of others that are asked whether a write is allowed "
    "(AuthZEN).",
    "reconciliation.decisionproposal": "Decisions that wait, or waited, for a second person.",
    "reconciliation.evidence": "What is known of what providers did, from whom and when.",
    "reconciliation.hold": "Cases: what waits, or waited, for a person.",
    "reconciliation.operation": "Writes to other systems: each is one intended effect.",
    "reconciliation.provider": "Systems that are written to: address, credential, contract, and "
    "the queue for what is not known.",
    "reconciliation.rehearsal": "What was shown of a provider in its sandbox.",
    "reconciliation.reviewqueue": "Where cases go: whose they are, when they are late, whether two "
    "people decide.",
    "reconciliation.sandbox": "Where a provider may be rehearsed without harm.",
    "reconciliation.shift": "The rota: who is on call for a queue, and when.",
    "reconciliation.transmission": "Each sending of a write: how far it came, what was answered.",
    "workflows.accesstoken": "What programs sign in with: of a tenant, or of a person.",
    "workflows.approval": "Answers that people gave to what was proposed.",
    "workflows.attempt": "Each worker's hold of a run at a step.",
    "workflows.authorisationrecord": "Each answer to whether something is allowed, with what it "
    "rested on.",
    "workflows.eventsource": "Systems whose webhooks and signals runs wait for.",
    "workflows.policyversion": "Who may do what without being asked, and what takes an approval.",
    "workflows.proposal": "What somebody wants to do, and people are asked about first.",
    "workflows.run": "Workflows under way and ended.",
    "workflows.serviceaccount": "Agents and services that propose or start something; each has an "
    "owner.",
    "workflows.tenant": "Whose work it is: people see the runs, events and cases of the tenants "
    "that they have a right on.",
}


def about(model: Any) -> str:
    """What the rows of a model are; empty for one that nobody has described."""
    return ABOUT.get(model._meta.label_lower, "")
