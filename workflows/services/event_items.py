"""What people do about events that no wait took: attach, dismiss, take back, replay.

Each is one transaction and one conditional change, so that doing it twice does it once and of two
people the second is told what the first did. What was done is in the audit record; of an attached
event the person's reason stands at its match too, as the evidence on which the run went on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from workflows.core.durations import on
from workflows.core.errors import EventIsTaken, UsageError, WaitIsOver
from workflows.core.event_words import EventAction, EventFacts, offered
from workflows.core.events import Outcome
from workflows.core.states import EventState
from workflows.core.waits import lock_keys
from workflows.core.words import read_length, who
from workflows.failpoints import failpoint
from workflows.models import Event, Match, Wait
from workflows.models.event import TO_ACT_ON
from workflows.services import audit, event_holds
from workflows.services.clock import database_now
from workflows.services.inbox import give, matched
from workflows.services.stopping import check_words
from workflows.sql import fetch

log = structlog.get_logger(__name__)

PURGED = "Its body was purged: there is nothing left to read."
SAY_WHY = "reason: say why, for those who will wonder"
CAME_OF = {
    Outcome.MATCHED: "It was given to the wait that it is for.",
    Outcome.AMBIGUOUS: "More than one open wait could take it: say which one, by attaching it.",
    Outcome.STORED: "No open wait is for it; it is kept for one that may come.",
    Outcome.LATE: "No open wait is for it; it stays late, and is kept for one that may come.",
}


@dataclass(frozen=True)
class Done:
    """What came of a wish.

    Attributes:
        done: it is as wished.
        theirs: somebody or something else was first; nothing was changed by this.
        changed: this has changed it.
        sentence: for people.
    """

    done: bool
    theirs: bool
    changed: bool
    sentence: str


def facts_of(event: Event) -> EventFacts:
    return EventFacts(
        state=EventState(event.state),
        problem=event.problem,
        ambiguous=event.ambiguous_at is not None,
        dismissed_by=event.dismissed_by if event.dismissed_at else "",
        dismissed_reason=event.dismissed_reason,
        has_body=event.purged_at is None,
    )


def attach(event_id: UUID, wait_id: UUID, *, by: str, reason: str) -> Done:
    """Give an event to an open wait by a person's word; the wait's run goes on with it.

    Raises:
        UsageError: no reason is given, or the tenant of the event has no such wait.
        Event.DoesNotExist
    """
    check_reason(by, reason)
    event = Event.objects.get(pk=event_id)
    wait = Wait.objects.filter(pk=wait_id, tenant=event.tenant_id).first()
    if wait is None:
        raise UsageError(f"there is no wait {wait_id}")
    if EventAction.ATTACH not in offered(facts_of(event)):
        return first(event, by, wait)
    failpoint("before_attach")
    try:
        with transaction.atomic():
            lock_all(event.tenant_id, ([event.type], event.correlation), key_of(wait))
            give(event.pk, [wait.pk], by=by, reason=reason)
            detail = {"wait": str(wait.pk), "run": str(wait.run_id), "evidence": "operator"}
            audit.record(by, "event attached", f"event:{event.pk}", reason=reason, **detail)
    except EventIsTaken:
        return first(Event.objects.get(pk=event_id), by, wait)
    except WaitIsOver:
        return over(Wait.objects.get(pk=wait_id))
    failpoint("after_attach")
    log.info("event.attached", event_row=str(event.pk), wait=str(wait.pk), run=str(wait.run_id))
    return Done(True, False, True, "It is attached, and its run goes on with it.")


def dismiss(event_id: UUID, *, by: str, reason: str) -> Done:
    """Say that no wait is to have an event; it is kept as long as its source says.

    Raises:
        UsageError: no reason is given.
        Event.DoesNotExist
    """
    check_reason(by, reason)
    failpoint("before_dismiss")
    with transaction.atomic():
        changed = Event.objects.filter(TO_ACT_ON, pk=event_id).update(
            dismissed_at=Now(), dismissed_by=by, dismissed_reason=reason, ambiguous_at=None
        )
        if changed:
            event_holds.close_holds([event_id], "the event was dismissed", by)
            audit.record(by, "event dismissed", f"event:{event_id}", reason=reason)
    failpoint("after_dismiss")
    if changed:
        return Done(True, False, True, "It is dismissed.")
    event = Event.objects.get(pk=event_id)
    if event.dismissed_at is not None and event.dismissed_by == by:
        return Done(True, False, False, "It is dismissed already.")
    return first(event, by)


def restore(event_id: UUID, *, by: str, reason: str) -> Done:
    """Take a dismissal back, and look for a wait that is open for the event by now.

    Raises:
        UsageError: no reason is given.
        Event.DoesNotExist
    """
    check_reason(by, reason)
    event = Event.objects.get(pk=event_id)
    failpoint("before_restore")
    with transaction.atomic():
        lock_all(event.tenant_id, ([event.type], event.correlation))
        # Without its body no wait could read it.
        dismissed = Event.objects.filter(pk=event_id, dismissed_at__isnull=False, purged_at=None)
        changed = dismissed.update(dismissed_at=None, dismissed_by="", dismissed_reason="")
        outcome = None
        if changed:
            audit.record(by, "event restored", f"event:{event_id}", reason=reason)
            event.refresh_from_db()
            if event.state != EventState.REJECTED:
                outcome = matched(event)
    failpoint("after_restore")
    if not changed and event.purged_at is not None:
        return Done(False, True, False, f"{PURGED} Nothing was changed.")
    if not changed:
        return Done(True, True, False, "It is not dismissed, or not any more. Nothing was changed.")
    became = CAME_OF[outcome] if outcome else "It is rejected, as it was."
    return Done(True, False, True, f"The dismissal is taken back. {became}")


# --- parts ------------------------------------------------------------------------------------

Key = tuple[Iterable[str], str]
"""The types and the correlation under which events and waits are matched."""


def key_of(wait: Wait) -> Key:
    return wait.event_types, wait.correlation


def lock_all(tenant: UUID, *keys: Key) -> None:
    """Lock what is matched under, of several keys in the one order that everybody keeps."""
    numbers = {number for types, text in keys for number in lock_keys(tenant, set(types), text)}
    fetch("lock_matching", {"keys": sorted(numbers)})


def check_reason(by: str, reason: str) -> None:
    check_words(by, reason)
    if not read_length(reason):
        raise UsageError(SAY_WHY)


def first(event: Event, by: str, wait: Wait | None = None) -> Done:
    """Tell whoever came second what became of the event before."""
    now = database_now()
    if event.dismissed_at is not None:
        said = f"{who(event.dismissed_by)} dismissed it first, {on(event.dismissed_at, now)}."
        return Done(False, True, False, f"{said} Nothing was changed, and yours is not recorded.")
    match = Match.objects.filter(event=event).select_related("wait__run").order_by("at").first()
    if match is None:
        return Done(False, True, False, f"It is {event.state} and cannot be given to a wait.")
    if wait is not None and match.by == by and is_given(event, wait, by):
        return Done(True, False, False, "It is attached to this wait already.")
    run = match.wait.run
    where = f"{run.workflow} {match.wait.step}, run …{run.pk.hex[-6:]}"
    if match.by:
        said = f"{who(match.by)} attached it to {where} first, {on(match.at, now)}."
    else:
        said = f"{where} took it {on(match.at, now)}."
    return Done(False, True, False, f"{said} Nothing was changed, and yours is not recorded.")


def is_given(event: Event, wait: Wait, by: str) -> bool:
    return Match.objects.filter(Q(event=event, wait=wait, by=by)).exists()


def over(wait: Wait) -> Done:
    at = f" {on(wait.resolved_at, database_now())}" if wait.resolved_at else ""
    how = {"resolved": "had what it needed", "expired": "ran out", "cancelled": "was cancelled"}
    said = f"The wait {how.get(wait.state, 'is being cancelled')}{at}. Nothing was changed."
    return Done(False, True, False, said)
