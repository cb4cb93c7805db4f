"""What a message says, as things are when it is sent: for `services.delivering`.

Only what its reader may see at that moment; what is decided or closed meanwhile is left out, and a
message of which nothing is left is not sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.urls import reverse

from reconciliation import access
from reconciliation.access import SHOWN_WITH
from reconciliation.core.letters import Item, Letter
from reconciliation.core.notifications import OF_OPEN_HOLDS, Kind
from reconciliation.core.queue_views import Looked
from reconciliation.core.reason_words import reason_words
from reconciliation.core.states import HoldState
from reconciliation.models import BulkAction, Channel, Hold, Message, Notification
from reconciliation.selectors.queue import subject_of, url_of
from reconciliation.selectors.words import amount_of, clock, name_of, sentence_of
from reconciliation.services.bulk import taken_by
from reconciliation.services.profiles import profile_of
from reconciliation.services.providers import guarded_until
from workflows.core.durations import age
from workflows.core.words import who
from workflows.selectors.paging import address

ITEMS_SHOWN = 10
MOMENT = timedelta(minutes=1)  # what is late by less is due now
SUMMARY = "summary"

# Title, and what it is about, by what happened to a hold.
OF_HOLDS = {
    Kind.OPENED: ("Held", "A case waits for a person's decision."),
    Kind.ASSIGNED: ("Assigned to you", "A case was assigned to you."),
    Kind.TAKEN: (
        "Not yours any more",
        "A case of yours went to somebody else: you need not see to it any more.",
    ),
    Kind.ASKED: ("You are asked", "A colleague asks you for information; the case shows what."),
    Kind.REMINDER: ("Your reminder", "You wanted to hear of this case now."),
    Kind.PROPOSED: (
        "Needs a second person",
        "Somebody has proposed a decision. Nothing moves until somebody else confirms it.",
    ),
    Kind.NOT_CONFIRMED: (
        "Not confirmed",
        "What you proposed does not count: it was refused, or what it rested on has changed. The "
        "case waits for a decision again.",
    ),
    Kind.DUE_SOON: ("Due soon", "A case is due soon, and nobody has decided it."),
    Kind.OVERDUE: ("Overdue", "A case is past its due time, and nobody has decided it."),
    Kind.WINDOW: (
        "Window closing",
        "The provider soon guards a second send no longer: then it can only be looked up, or "
        "somebody has to know.",
    ),
    Kind.PROVEN: ("Settled by proof", "Proof came late and has closed a case: nothing is needed."),
}
# How a summary counts them.
COUNTED = {
    Kind.OPENED: "held",
    Kind.ASSIGNED: "assigned",
    Kind.TAKEN: "that went from you to somebody else",
    Kind.ASKED: "that ask you",
    Kind.REMINDER: "of your reminders",
    Kind.PROPOSED: "that need a second person",
    Kind.NOT_CONFIRMED: "that you proposed and nobody confirmed",
    Kind.DUE_SOON: "due soon",
    Kind.OVERDUE: "overdue",
    Kind.WINDOW: "with a window that closes",
    Kind.PROVEN: "settled by proof",
    Kind.CONTRADICTED: "about a provider that broke its contract",
    Kind.DISPATCH: "about dispatch",
    Kind.STOPPED: "about a channel that has stopped",
    Kind.DIGEST: "digest",
    Kind.TEST: "test",
}


def write(message: Message) -> Letter | None:
    """The letter that `message` is, now; None when nothing of it is worth telling any more."""
    found = notifications_of(message)
    told = [each for each in found if is_worth_telling(each)]
    told = visible(told, message.channel.person)
    if not told:
        return None
    return single(message, told[0]) if len(told) == 1 else summary(message, told)


def notifications_of(message: Message) -> QuerySet[Notification]:
    return (
        Notification.objects.filter(deliveries__message=message)
        .select_related("provider", "queue", "person")
        .select_related(*(f"hold__{name}" for name in SHOWN_WITH))
        .order_by("pk")
    )


def is_worth_telling(notification: Notification) -> bool:
    hold, kind = notification.hold, Kind(notification.kind)
    if hold is None and kind == Kind.TAKEN:
        return lost_by(notification).exists()
    if hold is None or kind not in OF_OPEN_HOLDS:
        return True
    theirs = hold.assignee_id == notification.person_id
    # Who has proposed anew since knows of it.
    waits = hold.proposal_id is not None
    as_told = {
        Kind.ASSIGNED: theirs,
        Kind.TAKEN: not theirs,
        Kind.PROPOSED: waits,
        Kind.NOT_CONFIRMED: not waits,
        Kind.WINDOW: hold.operation is not None and guarded_until(hold.operation) is not None,
    }.get(kind, True)
    return hold.state == HoldState.OPEN and as_told


def lost_by(notification: Notification) -> QuerySet[Hold]:
    """The open cases that an action for many took from the reader, who may see them still."""
    person = notification.person
    assert person is not None
    items = taken_by(UUID(notification.says["bulk"])).filter(had=person.pk)
    still = access.open_holds(person).filter(pk__in=items.values("hold"))
    return still.exclude(assignee=person)


def visible(told: list[Notification], reader: User | None) -> list[Notification]:
    """What its reader may see, if it is one person; a queue's own channel is told of its holds."""
    if reader is None:
        return told
    if not reader.is_active:
        return []
    seen = {
        *seen_of(access.visible_holds(reader), [each.hold_id for each in told]),
        *seen_of(access.visible_providers(reader), [each.provider_id for each in told]),
        *seen_of(access.visible_queues(reader), [each.queue_id for each in told]),
    }
    return [
        each for each in told if {each.hold_id, each.provider_id, each.queue_id} - {None} <= seen
    ]


def seen_of(visible: QuerySet[Any], named: Sequence[UUID | None]) -> set[UUID]:
    """Which of the objects that are `named` are among the `visible` ones."""
    wanted = {each for each in named if each is not None}
    return set(visible.filter(pk__in=wanted).values_list("pk", flat=True)) if wanted else set()


# --- of one thing -----------------------------------------------------------------------------


def single(message: Message, notification: Notification) -> Letter | None:
    match notification.kind:
        case Kind.CONTRADICTED:
            return contradicted(message, notification)
        case Kind.DISPATCH:
            return dispatch(message, notification)
        case Kind.STOPPED:
            return stopped(message, notification)
        case Kind.TEST:
            return test(message, notification)
        case Kind.DIGEST:
            return digest(message, notification)
        case Kind.TAKEN if notification.hold is None:
            return taken(message, notification)
        case _:
            return of_hold(message, notification)


def zone_of(message: Message) -> tzinfo:
    """The zone that its reader has chosen."""
    person = message.channel.person
    return profile_of(person).zone if person else UTC


def moment(at: datetime, zone: tzinfo) -> str:
    """A time by UTC, and by the reader's own clocks where they show another."""
    own = at.astimezone(zone)
    return clock(at) if own.utcoffset() == timedelta() else f"{clock(at)} ({own:%H:%M} {zone})"


def letter(
    message: Message,
    kind: str,
    subject: str,
    lede: str,
    *,
    items: Sequence[Item] = (),
    more: int = 0,
    url: str = "",
) -> Letter:
    place = f"[{settings.ROMULUS_ENVIRONMENT}] " if settings.ROMULUS_ENVIRONMENT else ""
    return Letter(
        id=message.pk,
        kind=kind,
        subject=f"{place}{subject}",
        lede=lede,
        at=message.created_at,
        items=tuple(items),
        more=more,
        url=url,
        why=why_told(message.channel),
    )


def why_told(channel: Channel) -> str:
    if channel.queue is not None:
        return f"Sent to a channel of the queue {channel.queue.name}."
    return "Sent to you by Romulus; what you are told is shown under Notifications."


def of_hold(message: Message, notification: Notification) -> Letter:
    hold = notification.hold
    assert hold is not None, "what is told of no hold is told otherwise"
    kind, zone = Kind(notification.kind), zone_of(message)
    item = item_of(hold, zone)
    lede = f"{lede_of(kind, hold, message.created_at, zone)} {unknown_of(hold)}".strip()
    return letter(message, kind, f"{OF_HOLDS[kind][0]}: {item.title}", lede, items=[item])


def lede_of(kind: Kind, hold: Hold, at: datetime, zone: tzinfo) -> str:
    """What a locked phone shows beside the subject: until when, or how late it is at `at`."""
    due = moment(hold.due_at, zone)
    if kind is Kind.OPENED:
        return f"A person decides it, by {due}."
    if kind is Kind.DUE_SOON:
        return f"It is due {due}, and nobody has decided it."
    if kind is Kind.OVERDUE and timedelta() <= at - hold.due_at < MOMENT:
        return "It is due now, and nobody has decided it."
    if kind is Kind.OVERDUE and hold.due_at < at:
        return f"It is {age(at - hold.due_at)} late, and nobody has decided it."
    return OF_HOLDS[kind][1]


def unknown_of(hold: Hold) -> str:
    """What nobody knows of an open case of an operation."""
    is_open = hold.state == HoldState.OPEN and hold.operation is not None
    return sentence_of(hold).unknown if is_open else ""


def item_of(hold: Hold, zone: tzinfo) -> Item:
    """The case as a notification names it. What went wrong in a step stays in the console: an
    error's text may hold anything."""
    facts = []
    if hold.operation is not None:
        said = sentence_of(hold)
        facts += [("At stake", amount_of(hold.operation))]
        facts += [("Known", said.known), ("Not known", said.unknown)]
        ends = guarded_until(hold.operation)
        facts += [("Guarded by the provider until", moment(ends, zone) if ends else "")]
    else:
        facts += [("Reason", reason_words(hold.reason))]
    if hold.state == HoldState.OPEN:
        facts += [("Settled by", sentence_of(hold).settles), ("Due", moment(hold.due_at, zone))]
        facts += [("Assigned to", name_of(hold.assignee) if hold.assignee else "nobody")]
    facts += [("Queue", hold.queue.name if hold.queue else "none takes it")]
    shown = tuple((name, text) for name, text in facts if text)
    return Item(subject_of(hold), shown, absolute(url_of(hold)))


def contradicted(message: Message, notification: Notification) -> Letter:
    provider = notification.provider
    assert provider is not None
    lede = (
        f"{provider.name} was seen to break its contract: {provider.contradiction} Nothing is "
        "repeated to it until somebody has reviewed that."
        if provider.contradicted_at is not None
        else f"{provider.name} was seen to break its contract, and somebody has reviewed that."
    )
    url = absolute(reverse("provider", args=[provider.slug]))
    subject = f"{provider.name} broke its contract"
    return letter(message, notification.kind, subject, lede, url=url)


def dispatch(message: Message, notification: Notification) -> Letter:
    says = notification.says
    by = who(str(says["by"]))
    subject = f"Dispatch of {says['covers']} is {says['to']}"
    lede = f"{subject}, by {by}: {says['reason']}"
    return letter(message, notification.kind, subject, lede, url=absolute(reverse("dispatch")))


def stopped(message: Message, notification: Notification) -> Letter:
    says = notification.says
    lede = (
        f"{says['channel']} has stopped: {says['problem']} What it was to tell is kept. Once it "
        "is mended, a test message starts it again."
    )
    subject = f"{says['channel']} tells nobody any more"
    return letter(message, notification.kind, subject, lede, url=absolute(reverse("notifications")))


def test(message: Message, notification: Notification) -> Letter:
    by = str(notification.says["by"])
    lede = f"{by} sent this to see whether it arrives. It has."
    return letter(message, notification.kind, "A test message", lede)


# --- of several -------------------------------------------------------------------------------


def summary(message: Message, told: list[Notification]) -> Letter:
    """Many things that came together, as one: how many of what, and the most urgent cases."""
    numbers = Counter(Kind(each.kind) for each in told)
    lede = ", ".join(f"{number} {COUNTED[kind]}" for kind, number in numbers.items())
    holds = {each.hold.pk: each.hold for each in told if each.hold is not None}
    urgent = sorted(holds.values(), key=lambda hold: hold.due_at)
    zone = zone_of(message)
    items = [item_of(hold, zone) for hold in urgent[:ITEMS_SHOWN]]
    subject = f"{len(told)} notifications: {lede}"
    return letter(
        message,
        SUMMARY,
        subject,
        f"{lede[:1].upper()}{lede[1:]}.",
        items=items,
        more=len(holds) - len(items),
        url=absolute(reverse("review")),
    )


def digest(message: Message, notification: Notification) -> Letter | None:
    """What waits for a person; none on a day when nothing does."""
    person = notification.person
    assert person is not None
    holds = access.open_holds(person)
    total = holds.count()
    if not total:
        return None
    late = holds.filter(due_at__lte=message.created_at).count()
    own = holds.filter(assignee=person).count()
    urgent = holds.select_related(*SHOWN_WITH).order_by("due_at", "pk")[:ITEMS_SHOWN]
    zone = zone_of(message)
    items = [item_of(hold, zone) for hold in urgent]
    cases = "1 case waits" if total == 1 else f"{total} cases wait"
    subject = f"{cases}, {late} overdue"
    lede = f"{cases} in your queues; {own} assigned to you, {late} overdue. The most urgent first."
    return letter(
        message,
        notification.kind,
        subject,
        lede,
        items=items,
        more=total - len(items),
        url=absolute(reverse("review")),
    )


def taken(message: Message, notification: Notification) -> Letter | None:
    """Cases of the reader that went to somebody else together."""
    action = BulkAction.objects.select_related("by", "to").get(pk=notification.says["bulk"])
    to = action.to
    assert to is not None  # it gave cases away
    holds, zone = lost_by(notification), zone_of(message)
    total = holds.count()
    if not total:
        return None
    cases = "1 case of yours" if total == 1 else f"{total} cases of yours"
    urgent = holds.select_related(*SHOWN_WITH).order_by("due_at", "pk")[:ITEMS_SHOWN]
    items = [item_of(hold, zone) for hold in urgent]
    theirs = address(reverse("review"), Looked(assignee=str(to.pk)).query())
    return letter(
        message,
        notification.kind,
        f"{cases} went to {name_of(to)}",
        f"{name_of(action.by)} gave {cases} to {name_of(to)}: you need not see to "
        f"{'it' if total == 1 else 'them'} any more.",
        items=items,
        more=total - len(items),
        url=absolute(theirs),
    )


def absolute(path: str) -> str:
    """Where the console shows `path`: a page that asks to sign in, and decides nothing. Empty where
    nobody has said at which address people reach it."""
    return f"{settings.ROMULUS_CONSOLE_URL}{path}" if settings.ROMULUS_CONSOLE_URL else ""
