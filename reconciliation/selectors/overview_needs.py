"""What of the open holds is the reader's, and the most urgent of these."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import Count, Q, QuerySet

from reconciliation import access
from reconciliation.models import Hold, ReviewQueue
from reconciliation.overview_pages import Need
from reconciliation.selectors.queue import detail_of, subject_of, url_of
from reconciliation.selectors.words import amount_of, sentence_of
from workflows.selectors.words import counted
from workflows.sql import fetch_of
from workflows.sql.statement import Statement

NEEDS_SHOWN = 6
SHOWN_WITH = ("run", "event__source", "operation")


@dataclass(frozen=True, slots=True)
class HoldCounts:
    """The open holds that one person may see, and those of them that are theirs."""

    total: int
    late: int
    mine: int
    mine_late: int
    oldest: datetime | None


def theirs(user: User) -> Q:
    """Holds that `user` answers for: assigned to them, or to nobody and in a queue of theirs."""
    owned = ReviewQueue.objects.filter(owners=user)
    return Q(assignee=user) | Q(assignee=None, queue__in=owned)


# As `theirs`.
MINE = f"(assignee_id = %(user)s OR assignee_id IS NULL AND queue_id IN ({access.OWNED}))"
OPEN_HOLDS = access.open_holds_counted(
    "count(*) AS number, count(*) FILTER (WHERE due_at <= %(now)s) AS past_due,"
    " min(opened_at) AS since"
)
COUNTED = Statement(
    "overview_holds",
    f"""
    SELECT coalesce(sum(number), 0)::bigint AS total, coalesce(sum(past_due), 0)::bigint AS late,
        coalesce(sum(number) FILTER (WHERE mine), 0)::bigint AS mine,
        coalesce(sum(past_due) FILTER (WHERE mine), 0)::bigint AS mine_late, min(since) AS oldest
    FROM (SELECT number, past_due, since, {MINE} AS mine FROM {OPEN_HOLDS} OFFSET 0) open
    """,  # noqa: S608 (constants; OFFSET: whose they are is looked at once for each)
)


def hold_counts(user: User, now: datetime) -> HoldCounts:
    (row,) = fetch_of(COUNTED, access.asked_of(user) | {"now": now})
    return HoldCounts(**row)


def most_urgent(user: User) -> QuerySet[Hold]:
    """The most urgent cases of `user`."""
    mine: QuerySet[Hold] = access.open_holds(user).filter(theirs(user))
    shown = mine.select_related(*SHOWN_WITH).defer("event__body")
    return shown.order_by("due_at", "pk")[:NEEDS_SHOWN]


def need_of(hold: Hold, now: datetime) -> Need:
    said = sentence_of(hold)
    detail = detail_of(hold)
    return Need(
        url=url_of(hold),
        title=f"{subject_of(hold)}, {detail}" if detail else subject_of(hold),
        text=said.settles or said.known,
        due_at=hold.due_at,
        is_late=hold.due_at <= now,
        amount=amount_of(hold.operation) if hold.operation else "",
    )


def own_news(user: User, since: datetime, now: datetime) -> str:
    """What became of the cases of `user` after `since`: "1 new case is yours."; empty for nothing.

    Only what asks for them: a new case, or one that is past due now.
    """
    counts = (
        access.open_holds(user)
        .filter(theirs(user))
        .aggregate(
            new=Count("pk", filter=Q(opened_at__gt=since)),
            late=Count("pk", filter=Q(due_at__gt=since, due_at__lte=now)),
        )
    )
    new, late = counts["new"], counts["late"]
    said = [f"{counted(new, 'new case')} {'is' if new == 1 else 'are'} yours."] if new else []
    if late:
        said.append(f"{counted(late, 'case')} of yours {'is' if late == 1 else 'are'} past due.")
    return " ".join(said)
