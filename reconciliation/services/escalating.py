"""What time brings: holds that nobody decides are told of, step by step, what is proposed becomes
void, and digests come due.

Duties of the sweep: idempotent, any number of processes at once.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models.functions import Now

from reconciliation.core.digests import Every, next_digest
from reconciliation.core.notifications import Kind, Times, next_at, steps_of
from reconciliation.core.states import HoldState
from reconciliation.models import Digest, Hold, Notification
from reconciliation.services.providers import guarded_until
from reconciliation.services.snoozing import due_reminders, mark_told
from reconciliation.services.telling import tell, tell_reminder, tell_step
from reconciliation.services.voiding import end_what_is_void
from workflows.failpoints import failpoint
from workflows.services.clock import database_now

BATCH = 200
# A key may be relied on again while its window lasts, and what is proposed become void at any time.
WINDOW_AGAIN = timedelta(minutes=10)
PROPOSAL_AGAIN = timedelta(minutes=1)


def escalate_holds() -> int:
    """Tell of the open holds for which a step has come, and end what is proposed on them if it is
    void; return how many were looked at."""
    due = Hold.objects.filter(state=HoldState.OPEN, tell_at__lte=Now())
    if not due.exists():
        return 0
    failpoint("before_escalate")
    with transaction.atomic():
        holds = list(
            due.select_for_update(of=("self",), skip_locked=True)
            .select_related("queue", "operation__provider")
            .order_by("tell_at")[:BATCH]
        )
        now = database_now()
        for hold in holds:
            escalate(hold, now)
    failpoint("after_escalate")
    for hold in holds:
        if hold.proposal_id is not None:
            end_what_is_void(hold.pk)
    return len(holds)


def escalate(hold: Hold, now: datetime) -> None:
    operation = hold.operation
    window = operation.replay_not_after if operation else None
    times = hold.queue.times if hold.queue else Times()
    steps = steps_of(hold.opened_at, hold.due_at, window, times)
    # Where nobody relies on the key, no protection ends that anybody had to hear of.
    is_guarded = operation is not None and guarded_until(operation) is not None
    looks = [next_at(steps, now)]
    for step in steps:
        if step.kind is Kind.WINDOW and not is_guarded:
            looks += [now + WINDOW_AGAIN] if step.is_due(now) else []
        elif step.is_due(now):
            tell_step(hold, step)
    if hold.proposal_id is not None:
        looks += [now + PROPOSAL_AGAIN]
    tell_at = min((at for at in looks if at is not None), default=None)
    Hold.objects.filter(pk=hold.pk).update(tell_at=tell_at)


def tell_reminders() -> int:
    """Write down the reminders whose time has come; return how many."""
    due = due_reminders()
    if not due:
        return 0
    failpoint("before_reminder")
    with transaction.atomic():
        for reminder in due:
            if mark_told(reminder):
                tell_reminder(reminder)
    failpoint("after_reminder")
    return len(due)


def begin_digests() -> int:
    """Write down the digests whose time has come; return how many."""
    due = Digest.objects.filter(next_at__lte=Now())
    if not due.exists():
        return 0
    failpoint("before_digest")
    with transaction.atomic():
        digests = list(due.select_for_update(skip_locked=True).order_by("next_at")[:BATCH])
        now = database_now()
        for digest in digests:
            cause = f"digest:{digest.person_id}:{digest.next_at:%Y%m%dT%H%M}"
            tell(Notification(kind=Kind.DIGEST, cause=cause, person_id=digest.person_id))
            following = next_digest(Every(digest.every), digest.at, digest.zone, now)
            Digest.objects.filter(pk=digest.pk).update(next_at=following)
    failpoint("after_digest")
    return len(digests)
