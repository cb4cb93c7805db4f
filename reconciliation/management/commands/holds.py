"""`manage.py holds`: what waits for a person, the most urgent first."""

from __future__ import annotations

import argparse
from typing import Any

from reconciliation.core.states import HoldState
from reconciliation.models import Hold
from reconciliation.selectors.queue import detail_of, subject_of
from reconciliation.selectors.words import sentence_of
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
        holds = Hold.objects.filter(state=HoldState.OPEN).select_related(
            "queue", "operation", "run", "event__source", "proposal"
        )
        if given.queue:
            holds = holds.filter(queue__slug=given.queue)
        if given.overdue:
            holds = holds.filter(due_at__lte=database_now())
        if given.second:
            holds = holds.waiting_for_second()
        rows = list(holds.order_by("due_at", "pk")[: given.limit])
        self.answer(given, [as_json(row) for row in rows], [line(row, given.ids) for row in rows])


def as_json(hold: Hold) -> dict[str, Any]:
    said = sentence_of(hold)
    return {
        "id": hold.pk,
        "version": hold.version,
        "run": hold.run_id,
        "operation": hold.operation_id,
        "event": hold.event_id,
        "summary": summary_of(hold),
        "reason": hold.reason,
        "message": hold.message,
        "settles": said.settles,
        "queue": hold.queue.slug if hold.queue else None,
        "proposal": proposal_of(hold),
        "opened_at": hold.opened_at.isoformat(),
        "due_at": hold.due_at.isoformat(),
    }


def proposal_of(hold: Hold) -> dict[str, Any] | None:
    """What somebody has proposed on it and nobody has confirmed."""
    if hold.proposal is None:
        return None
    return {
        "id": hold.proposal.pk,
        "kind": hold.proposal.kind,
        "by": hold.proposal.by_name,
        "at": hold.proposal.at.isoformat(),
    }


def summary_of(hold: Hold) -> str:
    if hold.event is not None:
        return f"{subject_of(hold)}, {detail_of(hold)}"
    return hold.operation.summary if hold.operation else f"step {hold.held_run.step}"


def line(hold: Hold, only_id: bool) -> str:
    if only_id:
        return str(hold.pk)
    what = f"{hold.run.workflow}, {hold.run.step}" if hold.run else subject_of(hold)
    what = hold.operation.summary if hold.operation else what
    queue = hold.queue.slug if hold.queue else "no queue"
    second = f"  {hold.proposal.by_name} proposes {hold.proposal.kind}" if hold.proposal else ""
    due = f"due {hold.due_at:%Y-%m-%d %H:%M} UTC"
    return f"{hold.pk}  {due}  {queue}  {hold.reason}  {what}{second}"
