"""`manage.py decide`: record a decision on what is held, by the same rules as in the console."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from reconciliation import access
from reconciliation.core.errors import AlreadyDecided, InvalidDecision
from reconciliation.core.states import DecisionKind, HoldState
from reconciliation.models import Decision, DecisionProposal, Hold, ProposalEnd
from reconciliation.services.answers import Answer, Verdict, VerdictGiven
from reconciliation.services.asking import ask_for
from reconciliation.services.confirming import settle_proposal
from reconciliation.services.corrections import CorrectionGiven, correct
from reconciliation.services.decisions import record_decision
from reconciliation.services.locking import OF_AN_EVENT
from workflows.management.base import ConsoleCommand, Refused, WrongUse, an_id, positive

# What can be decided, what becomes of a proposal, and what is said of a decision later.
KINDS = [kind.value for kind in (*DecisionKind, *Verdict)]


class Command(ConsoleCommand):
    help = (
        "Record a decision on a hold or on the open hold of an operation, in somebody's name. "
        "Where the queue takes two people it is a proposal, which another confirms or refuses."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("case", type=an_id, help="ID of a hold, or of a held operation or run")
        parser.add_argument("--kind", required=True, choices=KINDS)
        parser.add_argument(
            "--note",
            default="",
            help="who told you, and where it is written; only withdrawing and confirming need none",
        )
        parser.add_argument("--by", required=True, metavar="USERNAME", help="who decides")
        parser.add_argument(
            "--code",
            help="last 6 characters of the operation's ID, or of the run's where a step is held; "
            "asked for when left out",
        )
        parser.add_argument("--resource", default="", help="the record at the provider")
        parser.add_argument("--until", type=a_time, help="keep holding until, as 2026-03-10T18:00")
        parser.add_argument(
            "--hold-version",
            type=positive,
            help="as `holds --json` gave it: refused when decided since",
        )
        parser.add_argument(
            "--ask", action="store_true", help="ask the provider again before it is decided"
        )
        parser.add_argument("--token", type=an_id, help="makes repeating the command harmless")

    def perform(self, given: argparse.Namespace) -> None:
        user = User.objects.filter(username=given.by, is_active=True).first()
        if user is None:
            raise Refused(f"there is no active account {given.by!r}")
        hold = hold_of(access.visible_holds(user), given.case)
        if hold is None:
            raise Refused(f"there is no held case {given.case} that {given.by} may see")
        if hold.event_id is not None:
            raise Refused(OF_AN_EVENT)
        if given.ask and hold.operation is not None:
            ask_for(hold.operation, user)
        recorded = in_words(lambda: act(hold, user, given))
        self.answer(given, as_json(recorded), [line(recorded)])


Recorded = Decision | DecisionProposal | ProposalEnd


def act(hold: Hold, user: User, given: argparse.Namespace) -> Recorded:
    """Record what `--kind` says, by the service that the console uses."""
    version, token = given.hold_version or hold.version, given.token or uuid4()
    if given.kind == Verdict.WITHDRAW:
        taken_back = VerdictGiven(Verdict.WITHDRAW, version, token, given.note)
        return settle_proposal(hold.pk, user, taken_back)
    code = given.code if given.code is not None else asked_code(hold)
    if given.kind in list(Verdict):
        verdict = VerdictGiven(Verdict(given.kind), version, token, given.note, code)
        return settle_proposal(hold.pk, user, verdict)
    if given.kind == DecisionKind.CORRECTION:
        return correct(hold.pk, user, CorrectionGiven(given.note, token, code))
    answer = Answer(
        kind=DecisionKind(given.kind),
        note=given.note,
        version=version,
        token=token,
        code=code,
        resource=given.resource,
        until=given.until,
    )
    return record_decision(hold.pk, user, answer)


def hold_of(holds: QuerySet[Hold], case: UUID) -> Hold | None:
    """The hold that is named, or the open one, else the last, of the operation or run that is."""
    of_run = Q(run=case, operation=None)
    named = holds.filter(Q(pk=case) | Q(operation=case) | of_run).select_related("operation")
    return named.filter(state=HoldState.OPEN).first() or named.order_by("-opened_at", "-pk").first()


def in_words(record: Callable[[], Recorded]) -> Recorded:
    try:
        return record()
    except InvalidDecision as error:
        raise Refused(f"{error.field}: {error}") from error
    except AlreadyDecided as error:
        theirs = f" Theirs: {error.decision.note}" if error.decision else ""
        raise Refused(f"{error}{theirs}") from error


def asked_code(hold: Hold) -> str:
    """What the person at the terminal types, so that a decision cannot land on another case."""
    subject = "operation" if hold.operation_id else "run"
    if not sys.stdin.isatty():
        raise WrongUse(f"give the last 6 characters of the {subject}'s ID with --code")
    what = hold.operation.summary if hold.operation else hold.message
    return input(f"{what}\nType the last 6 characters of the {subject}'s ID: ")


def a_time(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 2026-03-10T18:00") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def line(recorded: Recorded) -> str:
    match recorded:
        case DecisionProposal(kind=kind, by_name=name):
            return f"Proposed: {kind}, by {name}. Nothing moves until somebody else confirms it."
        case ProposalEnd(kind=kind, by_name=name):
            return f"The proposal is {kind}, by {name}."
        case Decision(kind=kind, by_name=name):
            return f"Recorded: {kind}, by {name}."


def as_json(recorded: Recorded) -> dict[str, object]:
    if isinstance(recorded, ProposalEnd):
        return {
            "id": recorded.pk,
            "hold": recorded.proposal.hold_id,
            "operation": recorded.proposal.operation_id,
            "proposal": recorded.proposal_id,
            "kind": recorded.kind,
            "by": recorded.by.get_username() if recorded.by else None,
            "at": recorded.at,
        }
    return {
        "id": recorded.pk,
        "hold": recorded.hold_id,
        "operation": recorded.operation_id,
        "proposed": isinstance(recorded, DecisionProposal),
        "kind": recorded.kind,
        "by": recorded.by.get_username(),
        "at": recorded.at,
    }
