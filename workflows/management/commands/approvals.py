"""`manage.py approvals`: what people are asked to approve, and their answers, by the rules of the
console."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.db.models.functions import Now

from workflows import access
from workflows.core.boundary.subjects import Subject
from workflows.core.proposals import Answer, ProposalState
from workflows.management.base import ConsoleCommand, Refused, WrongUse, an_id, positive
from workflows.models import Proposal
from workflows.selectors.proposal_document import answer_line, proposal_document, proposal_line
from workflows.selectors.words import money
from workflows.services.answers import Given, answer
from workflows.services.asking_again import ask_again

LIMIT = 50
LAST = 6  # characters of an ID that people type
ANSWERS = {
    Answer.APPROVE: "let it be carried out once, as it is shown",
    Answer.DENY: "nothing is sent; the run goes on as its workflow says",
    Answer.QUESTION: "send it back with a question, to be proposed anew",
    Answer.WITHDRAW: "take your own approval back, until it was used",
}


class Command(ConsoleCommand):
    help = "List what asks for an approval, look at one, and answer it in somebody's name."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

        listing = verbs.add_parser("list", help="those that ask now, newest first; --all for all")
        listing.add_argument("--all", action="store_true")
        listing.add_argument("--tenant", help="slug")
        listing.add_argument("--before", type=an_id, help="only those older than this proposal")
        listing.add_argument("--limit", type=positive, default=LIMIT)

        showing = verbs.add_parser("show", help="one proposal, and what would be sent")
        showing.add_argument("proposal", type=an_id)
        by_argument(showing)

        for kind, text in ANSWERS.items():
            answering = verbs.add_parser(kind.value, help=text)
            answering.add_argument("proposal", type=an_id)
            by_argument(answering)
            answering.add_argument("--note", default="", help="why, or what you ask")
            answering.add_argument("--digest", help="as `show --json` gave it: of what was read")
            answering.add_argument("--token", type=an_id, help="makes repeating it harmless")

        again = verbs.add_parser("again", help="ask for the same again, after its approval lapsed")
        again.add_argument("proposal", type=an_id)
        by_argument(again)
        for each in verbs.choices.values():
            super().add_arguments(each)

    def perform(self, given: argparse.Namespace) -> None:
        VERBS.get(given.verb, Command.answered)(self, given)

    def listed(self, given: argparse.Namespace) -> None:
        asked = {"tenant__slug": given.tenant, "pk__lt": given.before}
        wanted = {name: value for name, value in asked.items() if value is not None}
        rows = Proposal.objects.filter(**wanted).select_related("tenant")
        if not given.all:
            rows = rows.filter(state=ProposalState.OPEN, expires_at__gt=Now())
        found = list(rows.order_by("-pk")[: given.limit])
        self.answer(given, [proposal_line(each) for each in found], map(line, found))

    def shown(self, given: argparse.Namespace) -> None:
        user, proposal = named(given)
        payloads = access.may_view_payloads(user, proposal.tenant)
        document = proposal_document(proposal, payloads=payloads)
        self.answer(given, document, lines_of(proposal, document))

    def answered(self, given: argparse.Namespace) -> None:
        user, proposal = named(given)
        digest = given.digest if given.digest is not None else read_by(user, proposal)
        kind, token = Answer(given.verb), given.token or uuid4()
        row = answer(proposal.pk, user, Given(kind, digest, token, given.note))
        proposal.refresh_from_db()
        document = answer_line(row) | {"proposal": str(proposal.pk), "state": proposal.state}
        said = f"Recorded: {row.answer}, by {row.by_name}. The proposal is {proposal.state}."
        self.answer(given, document, [said])

    def asked_again(self, given: argparse.Namespace) -> None:
        user, proposal = named(given)
        made = ask_again(proposal.pk, user)
        self.answer(given, proposal_line(made), [line(made)])


VERBS: dict[str, Callable[[Command, argparse.Namespace], None]] = {
    "list": Command.listed,
    "show": Command.shown,
    "again": Command.asked_again,
}


def by_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--by", required=True, metavar="USERNAME", help="in whose name")


def named(given: argparse.Namespace) -> tuple[User, Proposal]:
    """Who is named, and the proposal, which they must be allowed to see."""
    user = User.objects.filter(username=given.by, is_active=True).first()
    if user is None:
        raise Refused(f"there is no active account {given.by!r}")
    visible = access.visible_proposals(user).select_related("tenant", "run")
    proposal = visible.filter(pk=given.proposal).first()
    if proposal is None:
        raise Refused(f"there is no proposal {given.proposal} that {given.by} may see")
    return user, proposal


def read_by(user: User, proposal: Proposal) -> str:
    """Show it to the person at the terminal, who types the end of its ID; return its digest."""
    if not sys.stdin.isatty():
        raise WrongUse("give the digest of what was read with --digest; `show --json` has it")
    payloads = access.may_view_payloads(user, proposal.tenant)
    for each in lines_of(proposal, proposal_document(proposal, payloads=payloads)):
        sys.stderr.write(f"{each}\n")
    if input(f"Type the last {LAST} characters of its ID: ").strip() != last_of(proposal.pk):
        raise Refused("that is not the end of its ID; nothing was recorded")
    return proposal.parameters_digest


def last_of(proposal: UUID) -> str:
    return str(proposal)[-LAST:]


def line(proposal: Proposal) -> str:
    until = f"{proposal.expires_at:%Y-%m-%d %H:%M:%S} UTC"
    who = Subject.parse(proposal.proposed_by).title
    return f"{proposal.pk}  {proposal.state:<9} until {until}  {proposal.summary}  (by {who})"


def lines_of(proposal: Proposal, document: dict[str, Any]) -> list[str]:
    parameters = document["parameters"]
    sent = "not shown to you" if parameters is None else json.dumps(parameters)
    facts = {
        "amount": money(proposal.amount, proposal.currency),
        "target": proposal.target,
        "on behalf of": proposal.on_behalf_of,
        "why": proposal.reason,
        "sent": f"{proposal.action} {sent}",
        "digest": proposal.parameters_digest,
    }
    answers = [
        f"  {each['at']} {each['answer']} by {each['by_name']}  {each['note']}".rstrip()
        for each in document["answers"]
    ]
    return [
        line(proposal),
        *(f"  {name}: {text}" for name, text in facts.items() if text),
        *answers,
    ]
