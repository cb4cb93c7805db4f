"""`manage.py events`: what came in, and what is done about it by hand."""

from __future__ import annotations

import argparse
from pathlib import Path
from uuid import UUID

from workflows.core.states import EventState
from workflows.management.base import ConsoleCommand, Refused, WrongUse, an_id, positive
from workflows.management.events import (
    as_document,
    as_json,
    concluded,
    event_named,
    line,
    lines_of,
)
from workflows.management.stopping import check_by, operator
from workflows.models import Event, EventSource, Wait
from workflows.models.event import TO_ACT_ON
from workflows.services.event_items import attach, dismiss, restore
from workflows.services.event_replay import replay
from workflows.services.event_sending import send_event

LIMIT = 50


class Command(ConsoleCommand):
    help = "List events, look at one, send one, and act on those that found no wait."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

        listing = verbs.add_parser("list", help="those to act on, newest first; --all for all")
        listing.add_argument("--all", action="store_true")
        listing.add_argument("--state", choices=[state.value for state in EventState])
        listing.add_argument("--source", help="slug")
        listing.add_argument("--tenant", help="slug")
        listing.add_argument("--before", type=an_id, help="only those older than this event")
        listing.add_argument("--limit", type=positive, default=LIMIT)
        listing.add_argument("--ids", action="store_true", help="IDs alone, one a line")

        showing = verbs.add_parser("show", help="one event: why it is where it is, and whose")
        showing.add_argument("event", type=an_id)
        showing.add_argument("--body", action="store_true", help="with what was received")

        sending = verbs.add_parser("send", help="send an event of an internal source")
        sending.add_argument("source", help="slug")
        sending.add_argument("--type", required=True)
        sending.add_argument("--correlation", required=True)
        sending.add_argument("--data", default="null", help="JSON; @FILE reads a file")
        sending.add_argument("--id", default="", help="the same one sends it once")
        by_argument(sending)

        attaching = verbs.add_parser("attach", help="give an event to an open wait, by your word")
        attaching.add_argument("event", type=an_id)
        attaching.add_argument("--wait", type=an_id, help="the wait's ID")
        attaching.add_argument("--run", type=an_id, help="or the ID of the run that waits")
        reason_arguments(attaching)

        for verb, text in {
            "dismiss": "say that no wait is to have it",
            "restore": "take a dismissal back",
            "replay": "read it anew, after its source's paths were mended",
        }.items():
            other = verbs.add_parser(verb, help=text)
            other.add_argument("event", type=an_id)
            reason_arguments(other)
        for each in verbs.choices.values():
            super().add_arguments(each)

    def perform(self, given: argparse.Namespace) -> None:
        VERBS[given.verb](self, given)

    def listed(self, given: argparse.Namespace) -> None:
        asked = {
            "state": given.state,
            "source__slug": given.source,
            "tenant__slug": given.tenant,
            "pk__lt": given.before,
        }
        wanted = {name: value for name, value in asked.items() if value is not None}
        events = Event.objects.filter(**wanted).select_related("source", "tenant").defer("body")
        if not given.all and given.state != EventState.MATCHED:
            events = events.filter(TO_ACT_ON)
        rows = list(events.order_by("-pk")[: given.limit])
        lines = [str(row.pk) if given.ids else line(row) for row in rows]
        self.answer(given, [as_json(row) for row in rows], lines)

    def shown(self, given: argparse.Namespace) -> None:
        event = event_named(given.event)
        document = as_document(event)
        self.answer(given, document, lines_of(event, document, body=given.body))

    def sent(self, given: argparse.Namespace) -> None:
        check_by(given.by)
        source = EventSource.objects.filter(slug=given.source).first()
        if source is None:
            raise Refused(f"there is no source {given.source!r}")
        receipt = send_event(
            source,
            type=given.type,
            correlation=given.correlation,
            data=read_data(given.data),
            event_id=given.id,
            by=given.by,
        )
        document = {"id": receipt.event, "outcome": str(receipt.outcome)}
        self.answer(given, document, [f"{receipt.event}  {receipt.outcome}"])

    def attached(self, given: argparse.Namespace) -> None:
        check_by(given.by)
        event = event_named(given.event)
        done = attach(event.pk, wait_named(given), by=given.by, reason=given.reason)
        concluded(self, given, event.pk, done)

    def acted(self, given: argparse.Namespace) -> None:
        check_by(given.by)
        event = event_named(given.event)
        act = {"dismiss": dismiss, "restore": restore, "replay": replay}[given.verb]
        concluded(self, given, event.pk, act(event.pk, by=given.by, reason=given.reason))


VERBS = {
    "list": Command.listed,
    "show": Command.shown,
    "send": Command.sent,
    "attach": Command.attached,
    "dismiss": Command.acted,
    "restore": Command.acted,
    "replay": Command.acted,
}


def by_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--by", default=f"command:{operator()}", metavar="NAME", help="who does it (%(default)s)"
    )


def reason_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reason", required=True, help="why, for the record")
    by_argument(parser)


def wait_named(given: argparse.Namespace) -> UUID:
    """The wait itself, or the open one of the run that is named."""
    if (given.wait is None) == (given.run is None):
        raise WrongUse("say which wait with --wait, or whose with --run")
    if given.wait is not None:
        wait: UUID = given.wait
        return wait
    found = Wait.objects.filter(run=given.run, state="waiting").values_list("pk", flat=True).first()
    if found is None:
        raise Refused(f"run {given.run} waits for no event now")
    return found


def read_data(text: str) -> str:
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUse(f"{text[1:]} cannot be read: {error}") from error
