"""The words for people that several review pages share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Prefetch, QuerySet

from reconciliation.access import Parts, marked_deciders
from reconciliation.core.facts import CONFLICT_LATER, HOLD_SENTENCES, LATER, HoldReason, Sentence
from reconciliation.core.rota import changes_at
from reconciliation.core.standing import bar_in_words
from reconciliation.core.states import DecisionKind
from reconciliation.decision_pages import Recorded
from reconciliation.models import (
    Decision,
    DecisionProposal,
    Hold,
    Operation,
    ReviewQueue,
    Shift,
)
from reconciliation.pages import Owner, Window
from reconciliation.services.providers import contract_of, is_key_trusted
from reconciliation.services.rota import on_call_at, rota_of
from workflows.core.durations import zone_name
from workflows.core.words import listed

SOON = timedelta(hours=1)
OWNERS_NAMED = 2  # of a queue none of whose owners may decide: so many have room in a row

DECISIONS: dict[str, str] = {
    DecisionKind.APPLIED: "It is done",
    DecisionKind.SEND_AGAIN: "It is not done: send it again",
    DecisionKind.ABANDON: "Abandon this operation",
    DecisionKind.REPLACE: "Replace it with a new operation",
    DecisionKind.UNDO: "Undo it with a second operation",
    DecisionKind.KEEP_HOLDING: "Keep holding",
    DecisionKind.CORRECTION: "Correction",
    DecisionKind.TRY_AGAIN: "Try the step again",
    DecisionKind.FAIL_RUN: "End the run",
}

# Holds of a run or an event, not of a write: what would settle them.
RUN_HOLDS: dict[str, str] = {
    HoldReason.NOT_READY: "Setting up what is missing, then trying the step again.",
    "step_failed": "Mending what made the step fail, then trying it again.",
    "workers_lost": "Finding out what ends the workers, then trying it again.",
    "step_missing": "Workers whose version has this step again, then trying it again; or a later "
    "version that migrates from this one, and manage.py migrate_runs.",
    "step_crashed": "Finding out in the logs why Romulus could not go on, then trying it again.",
    "ambiguous_event": "Attaching the event to the wait that is meant, or dismissing it.",
    "deadline": "The event, if it comes late: trying the step again takes it, or waits anew.",
    "payload_unfit": "A payload type that fits what came, then trying it again: it reads the same "
    "event.",
    "event_purged": "Ending the run: what the event brought is kept no more.",
    "intent_changed": "The workflow meaning what was decided on again, then trying the step again.",
    "undo_missing": "A version of the workflow that says how it is undone; or undoing it at the "
    "provider by hand, then ending the run.",
    "undo_refused": "Undoing it at the provider by hand, then ending the run.",
    "output_not_storable": "A corrected step, then trying it again.",
}


CONFIRMING = "Somebody else confirming or refusing what is proposed."


def sentence_of(hold: Hold) -> Sentence:
    """What is known, what is not, and what would settle a hold."""
    sentence = sentence_of_reason(hold)
    return replace(sentence, settles=CONFIRMING) if hold.proposal_id is not None else sentence


def sentence_of_reason(hold: Hold) -> Sentence:
    if hold.operation_id is None:
        settles = RUN_HOLDS.get(hold.reason, "Someone who knows how the run should go on.")
        return Sentence(hold.message, "", settles)
    try:
        return LATER if hold.reason == CONFLICT_LATER else HOLD_SENTENCES[HoldReason(hold.reason)]
    except ValueError:
        return Sentence(hold.message, "", "A recorded decision.")


def name_of(user: User) -> str:
    return user.get_full_name() or user.get_username()


def with_owners() -> tuple[Any, Any]:
    """What `owner_of` reads of a hold's queue, to be fetched with the hold; two queries."""
    shifts = Shift.objects.select_related("person")
    return (
        Prefetch("queue__owners", to_attr="its_owners"),
        Prefetch("queue__shifts", shifts, to_attr="its_shifts"),
    )


def people_of(holds: QuerySet[Hold]) -> tuple[QuerySet[Any], QuerySet[Shift]]:
    """The same for what is read `together`: owners and shifts of the queues of `holds`, and who of
    them may decide there."""
    queues = holds.order_by().values("queue")
    owners = ReviewQueue.owners.through.objects.filter(reviewqueue__in=queues)
    shifts = Shift.objects.filter(queue__in=queues)
    return (
        marked_deciders(owners.select_related("user"), "user", "reviewqueue"),
        marked_deciders(shifts.select_related("person"), "person", "queue"),
    )


def give_people(holds: Iterable[Hold], owners: Iterable[Any], shifts: Iterable[Shift]) -> None:
    """Put what `people_of` has found where `owner_of` reads it."""
    for queue in (hold.queue for hold in holds if hold.queue is not None):
        known: Any = queue
        known.its_owners = [each.user for each in owners if each.reviewqueue_id == queue.pk]
        known.its_shifts = [each for each in shifts if each.queue_id == queue.pk]
        known.its_deciders = {
            **{each.user_id: each.decides for each in owners if each.reviewqueue_id == queue.pk},
            **{each.person_id: each.decides for each in known.its_shifts},
        }


def bar_of(hold: Hold, person: User) -> str:
    """Why one of its people may not decide a hold, behind their name; empty where they may, or
    nobody asked."""
    decides = getattr(hold.queue, "its_deciders", {}).get(person.pk, True)
    parts: Parts = getattr(hold, "its_parts", Parts())
    return bar_in_words(decides, parts.started(person), parts.approved(person))


def owner_of(hold: Hold, user: User | None, now: datetime) -> Owner | None:
    """Who answers for a hold: whom it is assigned to, else who is on call for its queue, else its
    owners; None: nobody.

    The hold's queue comes `with_owners`, and the hold with its assignee.
    """
    if hold.assignee is not None:
        return named(hold, hold.assignee, user)
    queue: Any = hold.queue
    on_call = on_call_at(queue.its_shifts, now) if queue else []
    if on_call:
        able = (person for person in on_call if not bar_of(hold, person))
        return named(hold, next(able, on_call[0]), user, on_call=True)
    owners = owners_of(hold)
    if not owners or hold.queue is None:
        return None
    if len(owners) == 1:
        return named(hold, owners[0], user)
    return Owner(hold.queue.name, group=True, you=user in owners, barred=bar_of_all(hold, owners))


def bar_of_all(hold: Hold, owners: Sequence[User]) -> str:
    """That none of several owners may decide a hold, and who they are; empty where one may."""
    if not all(bar_of(hold, owner) for owner in owners):
        return ""
    names = sorted(name_of(owner) for owner in owners)
    named, more = names[:OWNERS_NAMED], len(names[OWNERS_NAMED:])
    return f"its owners may not decide: {listed([*named, f'{more} more'] if more else named)}"


def named(hold: Hold, person: User, user: User | None, *, on_call: bool = False) -> Owner:
    return Owner(name_of(person), you=person == user, on_call=on_call, barred=bar_of(hold, person))


def next_on_call(hold: Hold, now: datetime) -> datetime | None:
    """When somebody else is on call for a hold, whose queue comes as for `owner_of`."""
    queue: Any = hold.queue
    return changes_at(rota_of(queue.its_shifts), now) if queue else None


def owners_of(hold: Hold) -> list[User]:
    """The active owners of the hold's queue, which were loaded with it."""
    queue: Any = hold.queue
    return [user for user in queue.its_owners if user.is_active] if queue else []


def window_of(operation: Operation, now: datetime) -> Window:
    """The time in which the provider guards a second send; as it would be, where none was sent."""
    ends_at, rule = operation.replay_not_after, contract_of(operation).replay
    if operation.first_sent_at is None and rule is not None:
        ends_at = now + rule.window
    relied_on = rule is not None and is_key_trusted(operation.provider)
    return Window(operation.first_sent_at, ends_at, now, relied_on)


def amount_of(operation: Operation) -> str:
    """What is at stake: "EUR 1,240.00"; empty where no money is."""
    if operation.amount is None:
        return ""
    return f"{operation.currency} {operation.amount:,.2f}".strip()


def recorded(decision: Decision) -> Recorded:
    title = DECISIONS.get(decision.kind, decision.kind)
    return Recorded(title, decision.note, both_names(decision), decision.at)


def both_names(decision: Decision) -> str:
    """Who decided; where it took two, who confirmed it as well."""
    if not decision.second_name:
        return decision.by_name
    return f"{decision.by_name}, confirmed by {decision.second_name}"


def proposed(proposal: DecisionProposal) -> Recorded:
    title = DECISIONS.get(proposal.kind, proposal.kind)
    end = getattr(proposal, "end", None)
    state = end.kind if end else "proposed"
    return Recorded(title, proposal.note, proposal.by_name, proposal.at, state)


def clock(at: datetime, zone: tzinfo | None = UTC) -> str:
    """A time in a sentence, in `zone` and with it: "10 Mar, 04:05 CET"."""
    own = at.astimezone(zone)
    return f"{own.day} {own:%b, %H:%M} {zone_name(own)}"
