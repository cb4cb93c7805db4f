"""Triage a support ticket: read it, classify it, note the result in the desk, tell the requester.

The desk has neither key nor look-up. When the answer to its write is lost, only a person can say
whether the comment is there; the requester is told after that is settled (promise P7).
"""

from __future__ import annotations

from pydantic import BaseModel, Field

from workflows.core.definitions import Workflow
from workflows.core.intents import Intent
from workflows.services.run_view import RunView


class Ticket(BaseModel):
    number: str = Field(pattern=r"^T-[0-9]{1,12}$")
    subject: str = Field(max_length=200)
    body: str = Field(max_length=20_000)


class Triage(BaseModel):
    category: str
    urgent: bool


ticket_triage = Workflow("ticket_triage", version=1, input=Ticket)

WORDS = {"refund": "billing", "invoice": "billing", "password": "access", "login": "access"}


@ticket_triage.step(retries=3)
def read_ticket(run: RunView) -> Ticket:
    """Read the ticket"""
    ticket: Ticket = run.input
    return ticket


@ticket_triage.step(retries=3)
def classify(run: RunView) -> Triage:
    """Classify it"""
    ticket: Ticket = run.output("read_ticket")
    text = f"{ticket.subject} {ticket.body}".lower()
    category = next((WORDS[word] for word in WORDS if word in text), "general")
    return Triage(category=category, urgent="urgent" in text)


@ticket_triage.write(provider="desk", on_abandon="continue")
def note_in_desk(run: RunView) -> Intent:
    """Note the result in the desk"""
    ticket: Ticket = run.output("read_ticket")
    triage: Triage = run.output("classify")
    return Intent(
        action="comments.create",
        target=f"ticket {ticket.number}",
        parameters={
            "ticket": ticket.number,
            "body": f"Category: {triage.category}. Urgent: {'yes' if triage.urgent else 'no'}.",
        },
        summary=f"Comment on ticket {ticket.number}: {triage.category}",
    )


@ticket_triage.step(retries=3)
def tell_requester(run: RunView) -> str:
    """Tell the requester"""
    receipt = run.output("note_in_desk")
    noted = f"noted as {receipt['resource']}" if receipt else "not noted in the desk"
    return f"Your ticket {run.input.number} is with {run.output('classify').category}; {noted}."
