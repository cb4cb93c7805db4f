"""What a bulk action would hit, what not and why, before anything is done.

The rules are those that are asked again when each item is carried out (`core.review_work`). A plan
takes a fixed number of queries for any number of cases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.urls import reverse

from reconciliation import access
from reconciliation.core.queue_views import Looked
from reconciliation.core.review_work import (
    NOT_YOURS,
    SETTLED,
    Assignment,
    BulkKind,
    why_not_assign,
    why_not_look_up,
    why_not_remind,
    why_not_snooze,
)
from reconciliation.core.states import HoldState
from reconciliation.models import Hold
from reconciliation.queue_pages import BulkPlan, PlannedCase
from reconciliation.selectors.queue import subject_of, url_at, url_of
from reconciliation.selectors.queue_filters import condition
from reconciliation.selectors.queue_paging import KEYS
from reconciliation.selectors.words import name_of
from reconciliation.services.assigning import why_partial
from reconciliation.services.bulk import MOST, Wanted
from reconciliation.services.reconcile import can_be_asked
from workflows.selectors.words import counted

TITLES = {
    BulkKind.ASSIGN: "Assign {}",
    BulkKind.SNOOZE: "Snooze {}",
    BulkKind.REMIND: "Remind me of {}",
    BulkKind.LOOK_UP: "Look {} up again",
}
NO_TITLES = {
    BulkKind.ASSIGN: "Nothing to assign",
    BulkKind.SNOOZE: "Nothing to snooze",
    BulkKind.REMIND: "Nothing to be reminded of",
    BulkKind.LOOK_UP: "Nothing to look up again",
}
NEEDS = {BulkKind.ASSIGN: "to", BulkKind.SNOOZE: "until", BulkKind.REMIND: "until"}
NEEDS_TITLES = {
    BulkKind.ASSIGN: "Whom they go to",
    BulkKind.SNOOZE: "Until when",
    BulkKind.REMIND: "When",
}
TAKEN_AWAY = (
    "Those that somebody has are taken from them; who loses some is told once, of all that went."
)
LINES = {
    BulkKind.ASSIGN: ("Whoever gets them is told of each.",),
    BulkKind.SNOOZE: (
        "They leave the lists Mine and Team for everybody until then, and come back by themselves.",
        "When each is due stays, and so does who is told when it is late. All held shows them.",
    ),
    BulkKind.REMIND: (
        "Only you are reminded. A reminder that you set before is moved to this time.",
    ),
    BulkKind.LOOK_UP: (
        "The provider of each is asked once more, one after the other. Where that proves what came "
        "of a write, its case is closed and its run goes on.",
    ),
}


@dataclass(frozen=True)
class Chosen:
    """Which cases a plan is for: those that were ticked, or all that a list shows."""

    looked: Looked
    holds: tuple[UUID, ...] = ()
    all: bool = False


def plan_of(wanted: Wanted, chosen: Chosen, user: User, now: datetime) -> BulkPlan:
    """The plan of what `user` wants, as things are at `now`."""
    holds, total = chosen_holds(chosen, user, now)
    rules = Rules(wanted, user, holds)
    planned = [planned_case(hold, wanted, rules) for hold in holds]
    hit = tuple(case for case in planned if not case.why_not)
    needs = NEEDS.get(wanted.kind, "")
    ready = {"to": wanted.to is not None, "until": wanted.until is not None}.get(needs, True)
    titles = TITLES if hit else NO_TITLES
    title = titles[wanted.kind].format(counted(len(hit), "case"))
    return BulkPlan(
        kind=wanted.kind,
        title=title,
        button=title,
        hit=hit,
        left_out=tuple(case for case in planned if case.why_not),
        holds=confirmed_as(hit, holds),
        token=str(uuid4()),
        chosen=tuple(hold.hex for hold in chosen.holds),
        back=url_at(chosen.looked),
        ready=ready,
        all_url="" if chosen.all or total <= len(holds) else all_url(wanted.kind, chosen.looked),
        all_total=total,
        more=max(total - len(holds), 0) if chosen.all else 0,
        needs=needs,
        needs_title=NEEDS_TITLES.get(wanted.kind, ""),
        lines=lines_of(wanted, hit),
        queues=tuple({hold.queue_id for hold in holds if hold.queue_id is not None}),
    )


def lines_of(wanted: Wanted, hit: Sequence[PlannedCase]) -> tuple[str, ...]:
    """What happens when the plan is confirmed."""
    if not hit:
        return ()
    takes = wanted.kind is BulkKind.ASSIGN and any(case.has for case in hit)
    return (*LINES[wanted.kind], *((TAKEN_AWAY,) if takes else ()))


def planned_case(hold: Hold, wanted: Wanted, rules: Rules) -> PlannedCase:
    snoozes = wanted.kind is BulkKind.SNOOZE and wanted.until is not None
    return PlannedCase(
        hold=hold.pk,
        id=hold.case_id,
        title=subject_of(hold),
        url=url_of(hold),
        why_not=rules.why_not(hold),
        has=name_of(hold.assignee) if hold.assignee and hold.assignee != wanted.to else "",
        due_before=snoozes and hold.due_at <= wanted.until,  # type: ignore[operator]
    )


def confirmed_as(hit: Sequence[PlannedCase], holds: Sequence[Hold]) -> str:
    """The cases that are confirmed, each with whose it is now; `review_forms` reads it."""
    whose = {hold.pk: hold.assignee_id for hold in holds}
    return ",".join(f"{case.hold.hex}:{whose[case.hold] or ''}" for case in hit)


def chosen_holds(chosen: Chosen, user: User, now: datetime) -> tuple[list[Hold], int]:
    """The cases in the order of the list, and how many the whole list has."""
    shown = access.open_holds(user).filter(condition(chosen.looked, user, now))
    order = KEYS[chosen.looked.sort].order(backwards=False)
    # Of those that were ticked also the ones that were settled since: the plan says so.
    ticked = access.visible_holds(user).filter(pk__in=chosen.holds[:MOST])
    rows = shown if chosen.all else ticked
    rows = rows.select_related(*access.SHOWN_WITH).order_by(*order)
    return list(rows[:MOST]), shown.count()


def all_url(kind: BulkKind, looked: Looked) -> str:
    query: Mapping[str, str] = {"do": kind, "all": "1"} | looked.query()
    return f"{reverse('review_bulk')}?{urlencode(query)}"


class Rules:
    """Why each of many cases would be left out; rights are asked once for all of them."""

    def __init__(self, wanted: Wanted, user: User, holds: Sequence[Hold]) -> None:
        self.wanted, self.user = wanted, user
        self.to_sees: frozenset[UUID] = frozenset()
        self.parts: Mapping[UUID, access.Parts] = {}
        if wanted.to is not None:
            self.to_sees = access.seen_by(wanted.to, [hold.pk for hold in holds])
            self.parts = access.parts_in_each(holds)

    def why_not(self, hold: Hold) -> str:
        is_open = hold.state == HoldState.OPEN
        match self.wanted.kind:
            case BulkKind.ASSIGN:
                return self.why_not_assigned(hold, is_open)
            case BulkKind.SNOOZE:
                return why_not_snooze(
                    is_open=is_open,
                    may_decide=access.may_decide(self.user, hold),
                    may_assign=access.may_assign(self.user, hold),
                )
            case BulkKind.REMIND:
                return why_not_remind(is_open=is_open)
            case BulkKind.LOOK_UP:
                return why_not_look_up(
                    is_open=is_open,
                    of_a_write=hold.operation is not None,
                    can_be_asked=hold.operation is not None and can_be_asked(hold.operation),
                    may_decide=access.may_decide(self.user, hold),
                )

    def why_not_assigned(self, hold: Hold, is_open: bool) -> str:
        to = self.wanted.to
        if to is None:
            return self.why_not_given_away(hold, is_open)
        refused = why_not_assign(self.assignment(hold, is_open))
        return refused or why_partial(to, self.user, self.parts[hold.pk])

    def why_not_given_away(self, hold: Hold, is_open: bool) -> str:
        """As long as nobody was chosen to whom: what the planner might give to anybody."""
        claims = hold.assignee_id is None and access.may_decide(self.user, hold)
        if not is_open:
            return SETTLED
        return "" if claims or access.may_assign(self.user, hold) else NOT_YOURS

    def assignment(self, hold: Hold, is_open: bool) -> Assignment:
        to = self.wanted.to
        decides = to is not None and access.may_decide(to, hold)
        return Assignment(
            is_open=is_open,
            assignee=hold.assignee_id,
            by=self.user.pk,
            to=to.pk if to else None,
            by_may_assign=access.may_assign(self.user, hold),
            by_may_decide=access.may_decide(self.user, hold),
            to_fits=decides and hold.pk in self.to_sees,
        )
