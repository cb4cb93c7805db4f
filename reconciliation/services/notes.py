"""What people say about a held case: comments, questions of one person, answers. Never edited.

Each form carries a one-time token, so that submitting it twice says it once. The audit record says
who spoke, and never what was said.
"""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction

from reconciliation import access
from reconciliation.core.errors import CaseMoved, InvalidRequest
from reconciliation.core.review_work import SETTLED, NoteKind
from reconciliation.core.states import HoldState
from reconciliation.models import CaseNote, Hold
from reconciliation.services.audit import actor_of, add_entry
from reconciliation.services.telling import tell_asked
from workflows.core.words import is_storable, read_length
from workflows.failpoints import failpoint

MAX_TEXT = 4000
SAY_SOMETHING = "Write what the others should know."
TOO_LONG = f"Plain text of {MAX_TEXT:,} characters at most."


def comment(hold: Hold, by: User, text: str, token: UUID) -> CaseNote:
    """Say something about a case, also after it was settled.

    Raises:
        PermissionDenied: this person may not see the case.
        InvalidRequest: there is no text, or it cannot be kept (`text`).
    """
    return add(CaseNote(hold=hold, kind=NoteKind.COMMENT, text=text, by=by, token=token))


def ask(hold: Hold, by: User, to: User, text: str, token: UUID) -> CaseNote:
    """Ask somebody for information; the case shows it until it is answered, and waits for nothing.

    Raises:
        PermissionDenied: this person may not see the case.
        InvalidRequest: `to` may not see it (`to`), or as for `comment`.
        CaseMoved: it was settled meanwhile.
    """
    if hold.state != HoldState.OPEN:
        raise CaseMoved(SETTLED)
    if hold.pk not in access.seen_by(to, [hold.pk]):
        raise InvalidRequest("to", "Whom you ask may not see this case.")
    note = CaseNote(hold=hold, kind=NoteKind.QUESTION, text=text, by=by, to=to, token=token)
    note.to_name = name_of(to)
    return add(note)


def answer(question: CaseNote, by: User, text: str, token: UUID) -> CaseNote:
    """Answer a question; whoever sees the case may, since an answer is signed.

    Raises:
        CaseMoved: somebody answered it first; what was typed can be said as a comment.
    """
    kind = NoteKind.ANSWER
    said = CaseNote(hold=question.hold, kind=kind, text=text, by=by, question=question, token=token)
    return add(said)


def add(note: CaseNote) -> CaseNote:
    """Keep a note; of a form that was submitted before, return what it said then."""
    if note.hold_id not in access.seen_by(note.by, [note.hold_id]):
        raise PermissionDenied("You may not see this case.")
    note.text = checked_text(note.text, "text")
    note.by_name = name_of(note.by)
    failpoint("before_note")
    try:
        with transaction.atomic():
            note.save(force_insert=True)
            detail = {"hold": str(note.hold_id), "note": str(note.pk)}
            if note.to is not None:
                detail["to"] = note.to.get_username()
            add_entry(actor_of(note.by), VERBS[NoteKind(note.kind)], note.hold.subject, detail)
            tell_asked(note)
    except IntegrityError as error:
        before = CaseNote.objects.filter(token=note.token, by=note.by, hold=note.hold).first()
        if before is None:
            raise CaseMoved("Somebody answered it first. Yours was not kept.") from error
        return before
    failpoint("after_note")
    return note


VERBS = {
    NoteKind.COMMENT: "commented",
    NoteKind.QUESTION: "asked for information",
    NoteKind.ANSWER: "answered a question",
}


def checked_text(text: str, field: str) -> str:
    text = text.strip()
    if not read_length(text):
        raise InvalidRequest(field, SAY_SOMETHING)
    if not is_storable(text, MAX_TEXT):
        raise InvalidRequest(field, TOO_LONG)
    return text


def name_of(user: User) -> str:
    """As `selectors.words` names people; kept with what they said."""
    return user.get_full_name() or user.get_username()
