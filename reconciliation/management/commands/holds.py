"""`manage.py holds`: what waits for a person, the most urgent first."""

from __future__ import annotations

import argparse

from reconciliation.core.states import HoldState
from reconciliation.models import Hold
from reconciliation.selectors.hold_document import SHOWN_WITH, hold_line
from reconciliation.selectors.queue import subject_of
from workflows.management.base import ConsoleCommand, positive
from workflows.services.clock import database_now

LIMIT = 50


class Command(ConsoleCommand):
    help = "List what is held for a person, the most urgent first: one a line, or IDs alone."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--queue", help="slug")
        parser.add_argument("--overdue", action="store_true", help="only what is late")
        parser.add_argument(
            "--second", action="store_true", help="only what waits for a second person"
        )
        parser.add_argument("--limit", type=positive, default=LIMIT)
        parser.add_argument("--ids", action="store_true", help="IDs alone, one a line")

    def perform(self, given: argparse.Namespace) -> None:
        holds = Hold.objects.filter(state=HoldState.OPEN).select_related(*SHOWN_WITH)
        if given.queue:
            holds = holds.filter(queue__slug=given.queue)
        if given.overdue:
            holds = holds.filter(due_at__lte=database_now())
        if given.second:
            holds = holds.waiting_for_second()
        rows = list(holds.order_by("due_at", "pk")[: given.limit])
        self.answer(given, [hold_line(row) for row in rows], [line(row, given.ids) for row in rows])


def line(hold: Hold, only_id: bool) -> str:
    if only_id:
        return str(hold.pk)
    what = f"{hold.run.workflow}, {hold.run.step}" if hold.run else subject_of(hold)
    what = hold.operation.summary if hold.operation else what
    queue = hold.queue.slug if hold.queue else "no queue"
    second = f"  {hold.proposal.by_name} proposes {hold.proposal.kind}" if hold.proposal else ""
    due = f"due {hold.due_at:%Y-%m-%d %H:%M} UTC"
    return f"{hold.pk}  {due}  {queue}  {hold.reason}  {what}{second}"
