"""Whose a held case is: claiming, assigning, handing over, putting back. Decides nothing of it.

Each is one conditional update on who had the case when it was read: of two people who claim it the
second is told who has it. The version of the hold stays, so a decision form that is open is not
void because a colleague was named.
"""

from __future__ import annotations

from uuid import UUID, uuid4

import structlog
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction

from reconciliation import access
from reconciliation.core.errors import CaseMoved, InvalidRequest
from reconciliation.core.review_work import (
    NO_DECIDER,
    NOT_YOURS,
    SETTLED,
    Assignment,
    NoteKind,
    needs_note,
    why_not_assign,
)
from reconciliation.core.states import HoldState
from reconciliation.models import CaseNote, Hold
from reconciliation.services.audit import actor_of, add_entry
from reconciliation.services.notes import checked_text, name_of
from reconciliation.services.telling import tell_assigned, tell_taken
from workflows.failpoints import failpoint

log = structlog.get_logger(__name__)

PARTIAL = "Whom it would go to started this run or approved this write, so somebody else decides."


def assign(
    hold_id: UUID,
    to: User | None,
    by: User,
    *,
    seen: int | None,
    note: str = "",
    token: UUID | None = None,
    bulk: UUID | None = None,
) -> bool:
    """Make a case `to`'s; None: nobody's.

    Args:
        seen: the ID of whose it was when `by` read it; None: nobody's.
        note: kept in the thread of the case. Handing over one's own case needs one.
        token: of the form: submitting it twice says the note once.
        bulk: the bulk action that this is part of, for the record.

    Returns:
        False when it was `to`'s already; nothing is written then.

    Raises:
        PermissionDenied: this is not `by`'s to do.
        InvalidRequest: `to` may not see and decide it (`to`), or a note is missing (`note`).
        CaseMoved: it was settled, or went to somebody else, since it was read.
    """
    failpoint("before_assign")
    with transaction.atomic():
        hold = (
            Hold.objects.select_for_update(of=("self",), no_key=True)
            .select_related("queue")
            .get(pk=hold_id)
        )
        ensure_assignable(hold, to, by)
        wanted = to.pk if to else None
        if hold.assignee_id == wanted:
            return False
        if hold.assignee_id != seen:
            raise CaseMoved(f"{whose(hold)} Nothing was changed.")
        ensure_impartial(hold, to, by)
        if note or needs_note(seen, by.pk, wanted):
            note = checked_text(note, "note")
        moved = Hold.objects.filter(pk=hold.pk, state=HoldState.OPEN, assignee=seen)
        assert moved.update(assignee=to) == 1, "the row is locked"
        if note:
            add_handover(hold, to, by, note, token or uuid4())
        record(hold, to, by, bulk)
    failpoint("after_assign")
    log.info("hold.assigned", hold=str(hold.pk), to=wanted, by=by.pk)
    return True


def claim(hold_id: UUID, by: User) -> bool:
    """Make a case that nobody has `by`'s own; raises as `assign` does."""
    return assign(hold_id, by, by, seen=None)


def ensure_assignable(hold: Hold, to: User | None, by: User) -> None:
    refused = why_not_assign(facts_of(hold, to, by))
    if refused == SETTLED:
        raise CaseMoved(refused)
    if refused == NOT_YOURS and to == by and hold.assignee_id is not None:
        # They wanted to claim it, and somebody was first.
        raise CaseMoved(f"{whose(hold)} Nothing was changed.")
    if refused in (NOT_YOURS, NO_DECIDER):
        raise PermissionDenied(refused)
    if refused:
        raise InvalidRequest("to", refused)


def ensure_impartial(hold: Hold, to: User | None, by: User) -> None:
    """A case goes to nobody who may not decide it because of what they did: it would wait there."""
    refused = why_partial(to, by, access.parts_in(hold)) if to is not None else ""
    if refused and to == by:
        raise PermissionDenied(refused)
    if refused:
        raise InvalidRequest("to", refused)


def why_partial(to: User, by: User, parts: access.Parts) -> str:
    """Why `by` cannot give a case to `to`, whatever their rights; empty: nothing bars them."""
    barred = parts.why_not_impartial(to)
    return PARTIAL if barred and to != by else barred


def facts_of(hold: Hold, to: User | None, by: User) -> Assignment:
    """What the rule is asked with; for many holds at once see `selectors.bulk_plan`."""
    fits = to is not None and access.may_decide(to, hold)
    return Assignment(
        is_open=hold.state == HoldState.OPEN,
        assignee=hold.assignee_id,
        by=by.pk,
        to=to.pk if to else None,
        by_may_assign=access.may_assign(by, hold),
        by_may_decide=access.may_decide(by, hold),
        to_fits=fits and to is not None and hold.pk in access.seen_by(to, [hold.pk]),
    )


def whose(hold: Hold) -> str:
    return f"{name_of(hold.assignee)} has it now." if hold.assignee else "Nobody has it now."


def add_handover(hold: Hold, to: User | None, by: User, text: str, token: UUID) -> None:
    CaseNote.objects.create(
        hold=hold,
        kind=NoteKind.HANDOVER,
        text=text,
        by=by,
        by_name=name_of(by),
        to=to,
        to_name=name_of(to) if to else "",
        token=token,
    )


def record(hold: Hold, to: User | None, by: User, bulk: UUID | None) -> None:
    if to is None:
        verb = "put back"
    elif to == by:
        verb = "claimed" if hold.assignee_id is None else "took over"
    else:
        verb = "handed over" if hold.assignee_id == by.pk else "assigned"
    detail = {
        "hold": str(hold.pk),
        "to": to.get_username() if to else "",
        "from": hold.assignee.get_username() if hold.assignee else "",
    }
    if bulk is not None:
        detail["bulk"] = str(bulk)
    entry = add_entry(actor_of(by), verb, hold.subject, detail)
    if to is not None and to != by:
        tell_assigned(hold, to, entry.seq)
    had = hold.assignee
    # What is done to many at once is told of together (`bulk`).
    if to is not None and had is not None and had != by and bulk is None:
        tell_taken(hold, had, entry.seq)
