"""Writing down that people are to be told of something, in the transaction of what it is.

Only a row is written here, once for each cause; who is told, and how, is found out afterwards
(`addressing`). So a transaction that is rolled back tells nothing, and one that is committed is
told of, whichever process dies.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User

from reconciliation.core.notifications import Kind, Rung, Step
from reconciliation.core.rehearsals import NAME as REHEARSALS
from reconciliation.models import (
    BulkAction,
    CaseNote,
    Channel,
    DecisionProposal,
    Hold,
    Notification,
    Provider,
    Reminder,
    ReviewQueue,
    Sandbox,
)
from workflows.models import Run


def tell_opened(hold: Hold) -> None:
    tell(Notification(kind=Kind.OPENED, cause=f"opened:{hold.pk}", hold=hold, rung=Rung.ON_CALL))


def tell_proven(hold: Hold) -> None:
    """Proof came late, and has closed a hold that people were told of."""
    cause = f"proven:{hold.pk}"
    tell(Notification(kind=Kind.PROVEN, cause=cause, hold=hold, rung=Rung.ASSIGNEE))


def tell_proposed(proposal: DecisionProposal, seconds: Iterable[User]) -> None:
    """A decision waits for a second person: those who may confirm it hear, else administrators."""
    hold, cause = proposal.hold, f"proposed:{proposal.pk}"
    others = list(seconds)
    for person in others:
        each = f"{cause}:{person.pk}"
        tell(Notification(kind=Kind.PROPOSED, cause=each, hold=hold, person=person))
    if not others:
        rung = Rung.ADMINISTRATORS
        tell(Notification(kind=Kind.PROPOSED, cause=cause, hold=hold, rung=rung))


def tell_not_confirmed(proposal: DecisionProposal) -> None:
    """What somebody proposed was refused, or is void: they thought it was on its way."""
    cause = f"not_confirmed:{proposal.pk}"
    tell_person(Kind.NOT_CONFIRMED, cause, proposal.hold, proposal.by)


def tell_assigned(hold: Hold, to: User, entry: int) -> None:
    """A case became somebody's by another's hand; `entry` is its number in the audit record."""
    tell_person(Kind.ASSIGNED, f"assigned:{entry}", hold, to)


def tell_taken(hold: Hold, had: User, entry: int) -> None:
    """A case went from who `had` it to somebody else, by another's hand."""
    tell_person(Kind.TAKEN, f"taken:{entry}", hold, had)


def tell_taken_together(action: BulkAction, had: User) -> None:
    """Cases went to somebody else together: who `had` them hears of all at once."""
    tell(
        Notification(
            kind=Kind.TAKEN,
            cause=f"taken:{action.pk}:{had.pk}",
            person=had,
            says={"bulk": str(action.pk)},
        )
    )


def tell_asked(question: CaseNote) -> None:
    """Somebody is asked for information about a case."""
    if question.to is not None and question.to != question.by:
        tell_person(Kind.ASKED, f"asked:{question.pk}", question.hold, question.to)


def tell_reminder(reminder: Reminder) -> None:
    """A person wanted to hear of a case at this time."""
    cause = f"reminder:{reminder.pk}:{reminder.at:%Y%m%dT%H%M%S.%f}"
    tell_person(Kind.REMINDER, cause, reminder.hold, reminder.person)


def tell_person(kind: Kind, cause: str, hold: Hold, person: User) -> None:
    tell(Notification(kind=kind, cause=cause, hold=hold, person=person, rung=Rung.ASSIGNEE))


def tell_step(hold: Hold, step: Step) -> None:
    """A step on the ladder of a hold that nobody decides, once for each due time."""
    about = hold.due_at if step.kind is not Kind.WINDOW else step.until
    assert about is not None, "a window has an end"
    cause = f"{step.kind}:{hold.pk}:{step.rung}:{about:%Y%m%dT%H%M%S.%f}"
    tell(Notification(kind=step.kind, cause=cause, hold=hold, rung=step.rung))


def tell_contradicted(provider: Provider, at: datetime) -> None:
    """A provider broke its contract, and nothing is repeated to it any more."""
    tell(
        Notification(
            kind=Kind.CONTRADICTED,
            cause=f"contradicted:{provider.pk}:{at:%Y%m%dT%H%M%S.%f}",
            provider=provider,
            rung=Rung.OWNERS,
        )
    )


def tell_dispatch(entry: int, provider: Provider | None, says: dict[str, Any]) -> None:
    """A switch was thrown; `entry` is its number in the audit record."""
    tell(
        Notification(
            kind=Kind.DISPATCH,
            cause=f"dispatch:{entry}",
            provider=provider,
            rung=Rung.OWNERS,
            says=says,
        )
    )


def tell_stopped(channel: Channel, queue: ReviewQueue, at: datetime) -> None:
    """A queue's channel has stopped: its owners hear of it in another way."""
    tell(
        Notification(
            kind=Kind.STOPPED,
            cause=f"stopped:{channel.pk}:{at:%Y%m%dT%H%M%S.%f}",
            queue=queue,
            rung=Rung.OWNERS,
            says={"channel": str(channel), "problem": channel.problem},
        )
    )


def tell(notification: Notification) -> None:
    """Keep it, unless its cause was told of before. What is only rehearsed is told to nobody."""
    if is_rehearsed(notification):
        return
    Notification.objects.bulk_create([notification], ignore_conflicts=True)


def is_rehearsed(notification: Notification) -> bool:
    """Whether it is about a run of a rehearsal, or what stands in for a provider in one."""
    if notification.hold is not None:
        run = notification.hold.run_id
        return run is not None and Run.objects.filter(pk=run, tenant__slug=REHEARSALS).exists()
    provider = notification.provider_id
    return provider is not None and Sandbox.objects.filter(stand_in=provider).exists()
