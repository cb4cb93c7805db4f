"""What the frame around every page asks of the database: one query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Count, Exists, OuterRef, QuerySet
from django.urls import reverse

from reconciliation import access
from reconciliation.core.queue_views import Looked, Tab, View, looked_at
from reconciliation.core.rota import changes_at
from reconciliation.models import Channel, DispatchStop, SavedView, Shift
from reconciliation.selectors.queue_filters import condition
from reconciliation.selectors.queue_tabs import TABS, VIEWS, capped, saved_for
from reconciliation.selectors.words import listed, name_of
from reconciliation.services.rota import on_call_at, rota_of
from workflows.selectors.paging import address
from workflows.together import together

BANNER_SHOWN = 3
SAVED_SHOWN = 5  # the queue itself shows more of them, and says how much is in each
ON_CALL_SHOWN = 2
# What is read of a shift: each page asks for it.
OF_SHIFTS = (
    *("weekdays", "starts", "ends", "zone", "starts_at", "ends_at", "queue__name"),
    *(f"person__{name}" for name in ("username", "first_name", "last_name", "is_active")),
)
TODAY = timedelta(hours=20)  # within it a time of day says which day

# The views of the queue that stand beside every page, with how much is in them.
COUNTED = {
    "mine": (TABS[Tab.MINE], Looked(tab=Tab.MINE)),
    "closing": (VIEWS[View.CLOSING], Looked(view=View.CLOSING)),
}


@dataclass(frozen=True, slots=True)
class SideView:
    """A view of the queue in the side bar; `count` is empty where it is not counted."""

    text: str
    url: str
    count: str = ""


@dataclass(frozen=True, slots=True)
class OnCall:
    """Who answers for a queue now; nobody where `people` is empty.

    Attributes:
        until: when somebody else does; None: not within a week.
        today: that is within the day.
    """

    queue: str
    people: str
    until: datetime | None
    today: bool


class Frame(NamedTuple):
    """Attributes:
    needs_you: open holds that the person may see.
    stops: what nothing is sent of, as far as it is theirs to know: the newest first.
    failing: the channels that are theirs to see to and fail: those that failed last come first.
    views: ways to look at the queue, those that the person keeps last.
    on_call: who answers now for the queues whose cases are theirs to see to.
    """

    needs_you: int = 0
    stops: tuple[DispatchStop, ...] = ()
    failing: tuple[Channel, ...] = ()
    views: tuple[SideView, ...] = ()
    on_call: tuple[OnCall, ...] = ()


def frame_of(user: User | AnonymousUser, now: datetime) -> Frame:
    """Nobody has none of it."""
    if not isinstance(user, User):
        return Frame()
    failing = access.visible_channels(user).filter(failing_since__isnull=False)
    counts, stops, failing_shown, saved, shifts = together(
        counts_of(user, now),
        access.visible_stops(user).order_by("-at")[:BANNER_SHOWN],
        failing.select_related("queue", "person").order_by("-failing_since")[:BANNER_SHOWN],
        saved_for(user).order_by("name", "pk")[:SAVED_SHOWN],
        shifts_of(user),
    )
    counted = counts[0] if counts else dict.fromkeys(("held", *COUNTED), 0)
    return Frame(
        counted["held"],
        tuple(stops),
        tuple(failing_shown),
        views_of(counted, saved),
        duties(shifts, now),
    )


def counts_of(user: User, now: datetime) -> QuerySet[Any, Any]:
    """One row, or none while nothing is held."""
    views = {
        name: Count("pk", filter=condition(looked, user, now))
        for name, (_, looked) in COUNTED.items()
    }
    holds = access.open_holds(user).order_by().values("state")
    counted: QuerySet[Any, Any] = holds.annotate(held=Count("pk"), **views)
    return counted.values("held", *views)


def views_of(counted: dict[str, int], saved: Iterable[SavedView]) -> tuple[SideView, ...]:
    here = reverse("review")
    always = (
        SideView(text, address(here, looked.query()), capped(counted[name]))
        for name, (text, looked) in COUNTED.items()
    )
    kept = (
        SideView(view.name, address(here, looked_at(dict(parse_qsl(view.query))).query()))
        for view in saved
    )
    return (*always, *kept)


# --- who is on call ---------------------------------------------------------------------------


def shifts_of(user: User) -> QuerySet[Shift]:
    """The rotas of the first of the queues whose cases are `user`'s to see to."""
    queues = access.team_queues(user).filter(Exists(Shift.objects.filter(queue=OuterRef("pk"))))
    first = queues.order_by("name", "pk").distinct().values("pk", "name")[:ON_CALL_SHOWN]
    found = Shift.objects.filter(queue__in=first.values("pk")).select_related("queue", "person")
    return found.only(*OF_SHIFTS).order_by("queue__name", "queue", "pk")


def duties(shifts: Iterable[Shift], now: datetime) -> tuple[OnCall, ...]:
    by_queue = groupby(shifts, key=lambda shift: shift.queue_id)
    return tuple(duty_of(list(rows), now) for _, rows in by_queue)


def duty_of(shifts: list[Shift], now: datetime) -> OnCall:
    until = changes_at(rota_of(shifts), now)
    return OnCall(
        shifts[0].queue.name,
        listed([name_of(person) for person in on_call_at(shifts, now)]),
        until,
        until is not None and until - now < TODAY,
    )
