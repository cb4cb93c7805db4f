"""`manage.py decide`: record a decision on what is held, by the same rules as in the console."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from reconciliation import access
from reconciliation.core.errors import AlreadyDecided, InvalidDecision
from reconciliation.core.states import DecisionKind, HoldState
from reconciliation.models import Decision, DecisionProposal, Hold
from reconciliation.services.decisions import Answer, record_decision
from reconciliation.services.locking import OF_AN_EVENT
from workflows.management.base import ConsoleCommand, Refused, WrongUse, an_id, positive


class Command(ConsoleCommand):
    help = "Record a decision on a hold or on the open hold of an operation, in somebody's name."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("case", type=an_id, help="ID of a hold, or of a held operation")
        parser.add_argument("--kind", required=True, choices=[kind.value for kind in DecisionKind])
        parser.add_argument("--note", required=True, help="who told you, and where it is written")
        parser.add_argument("--by", required=True, metavar="USERNAME", help="who decides")
        parser.add_argument("--code", help="last 6 characters of the ID; asked for when left out")
        parser.add_argument("--resource", default="", help="the record at the provider")
        parser.add_argument("--until", type=a_time, help="keep holding until, as 2026-03-10T18:00")
        parser.add_argument(
            "--hold-version",
            type=positive,
            help="as `holds --json` gave it: refused when decided since",
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
        answer = Answer(
            kind=DecisionKind(given.kind),
            note=given.note,
            version=given.hold_version or hold.version,
            token=given.token or uuid4(),
            code=given.code if given.code is not None else asked_code(hold),
            resource=given.resource,
            until=given.until,
        )
        decision = recorded(hold, user, answer)
        self.answer(
            given, as_json(decision), [f"Recorded: {decision.kind}, by {decision.by_name}."]
        )


def hold_of(holds: QuerySet[Hold], case: UUID) -> Hold | None:
    """The hold that is named, or the open one, else the last, of the operation that is."""
    named = holds.filter(Q(pk=case) | Q(operation=case)).select_related("operation")
    return named.filter(state=HoldState.OPEN).first() or named.order_by("-opened_at", "-pk").first()


def recorded(hold: Hold, user: User, answer: Answer) -> Decision | DecisionProposal:
    try:
        return record_decision(hold.pk, user, answer)
    except InvalidDecision as error:
        raise Refused(f"{error.field}: {error}") from error
    except AlreadyDecided as error:
        theirs = f" Theirs: {error.decision.note}" if error.decision else ""
        raise Refused(f"{error}{theirs}") from error


def asked_code(hold: Hold) -> str:
    """What the person at the terminal types, so that a decision cannot land on another case."""
    if not sys.stdin.isatty():
        raise WrongUse("give the last 6 characters of the ID with --code")
    subject = "operation" if hold.operation_id else "run"
    what = hold.operation.summary if hold.operation else hold.message
    return input(f"{what}\nType the last 6 characters of the {subject} ID: ")


def a_time(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 2026-03-10T18:00") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def as_json(decision: Decision) -> dict[str, object]:
    return {
        "id": decision.pk,
        "hold": decision.hold_id,
        "operation": decision.operation_id,
        "kind": decision.kind,
        "by": decision.by.get_username(),
        "at": decision.at,
    }
