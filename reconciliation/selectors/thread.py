"""What people said about a case, and what the reader may do with it short of deciding it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.db.models import OuterRef, Subquery
from django.urls import reverse

from reconciliation import access
from reconciliation.core.review_work import NoteKind
from reconciliation.core.states import HoldState
from reconciliation.models import CaseNote, Hold, Reminder
from reconciliation.queue_pages import Note, Thread
from workflows.together import together

NOTES_SHOWN = 100

LEADS = {
    NoteKind.COMMENT: "Note.",
    NoteKind.QUESTION: "Question",
    NoteKind.ANSWER: "Answer",
    NoteKind.HANDOVER: "Handed over",
}


def thread_at(
    case: Mapping[str, Any],
    user: User,
    now: datetime,
    *,
    of: UUID | None = None,
    error: str = "",
    typed: str = "",
) -> Thread | None:
    """The thread of the latest hold of a case; None where `user` may see no hold of it.

    It holds what was said about earlier holds of the same case too, in the queues that `user` may
    see. One query.

    Args:
        case: which holds are of it.
        of: the hold, where another than the latest is meant.
        error, typed: of a comment that was not kept.
    """
    mine = Reminder.objects.filter(hold=OuterRef("pk"), person=user, ended_at=None)
    holds = (
        access.visible_holds(user)
        .filter(**case)
        .select_related("queue")
        .annotate(reminder=Subquery(mine.values("at")))
    )
    holds = holds.filter(pk=of) if of else holds
    notes = CaseNote.objects.filter(hold__in=access.visible_holds(user).filter(**case))
    found, newest = together(
        holds.order_by("-opened_at", "-pk")[:1],
        notes.order_by("-at", "-pk")[: NOTES_SHOWN + 1],
    )
    return thread_of(found[0], newest, user, now, error, typed) if found else None


def case_of(hold: Hold) -> Mapping[str, Any]:
    """Which holds are of the same case."""
    if hold.operation_id is not None:
        return {"operation": hold.operation_id}
    if hold.run_id is not None:
        return {"run": hold.run_id, "operation": None}
    return {"event": hold.event_id}


def thread_of(
    hold: Hold, newest: Sequence[CaseNote], user: User, now: datetime, error: str, typed: str
) -> Thread:
    decides, assigns = access.may_decide(user, hold), access.may_assign(user, hold)
    is_open = hold.state == HoldState.OPEN
    shown = newest[:NOTES_SHOWN][::-1]
    notes = tuple(note_of(row, user, shown) for row in shown)
    snoozed = hold.snoozed_until is not None and hold.snoozed_until > now
    marked: Any = hold
    return Thread(
        hold=hold.pk,
        is_open=is_open,
        notes=notes,
        token=str(uuid4()),
        questions=sum(bool(note.answer_url) for note in notes),
        may_claim=is_open and decides and hold.assignee_id is None,
        may_assign=is_open and assigns,
        may_put_back=is_open and hold.assignee_id == user.pk,
        may_snooze=is_open and (decides or assigns),
        snoozed_until=hold.snoozed_until if is_open and snoozed else None,
        reminded_at=marked.reminder if is_open else None,
        older=len(newest) > NOTES_SHOWN,
        error=error,
        typed=typed,
    )


def note_of(row: CaseNote, user: User, among: Sequence[CaseNote]) -> Note:
    kind = NoteKind(row.kind)
    answered = any(each.question_id == row.pk for each in among)
    open_question = kind is NoteKind.QUESTION and not answered
    return Note(
        id=row.pk,
        state=STATES[kind] if not open_question else "asks",
        lead=lead_of(row, kind),
        text=row.text,
        by=row.by_name,
        at=row.at,
        answer_url=reverse("review_answer", args=[row.pk]) if open_question else "",
        you=open_question and row.to_id == user.pk,
    )


STATES = {
    NoteKind.COMMENT: "noted",
    NoteKind.QUESTION: "asked_person",
    NoteKind.ANSWER: "answered",
    NoteKind.HANDOVER: "handover",
}


def lead_of(row: CaseNote, kind: NoteKind) -> str:
    if row.to_name:
        return f"{LEADS[kind]} to {row.to_name}."
    return LEADS[kind] if kind is NoteKind.COMMENT else f"{LEADS[kind]}."
