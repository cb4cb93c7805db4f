"""The review queue: what waits for a person, the most urgent first."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Count, Min, Q, QuerySet, Sum
from django.urls import reverse

from reconciliation import access
from reconciliation.models import Decision, Hold, Operation
from reconciliation.pages import QueueRow, ReviewPage
from reconciliation.selectors.words import (
    SOON,
    amount_of,
    owner_of,
    sentence_of,
    window_of,
    with_owners,
)
from workflows.pages import Export, Pager
from workflows.selectors.paging import PAGE_ROWS, address, as_uuid
from workflows.selectors.words import label_of, title_of

SHOWN_WITH = (
    "run",
    "event__source",
    "queue",
    "assignee",
    "operation__contract_version",
    "operation__provider",
)

Place = tuple[datetime, UUID]
"""Where a row stands in the queue: when it is due, and its ID."""


def needs_you_count(user: User | AnonymousUser) -> int:
    """How many open holds this person may see; none for nobody."""
    return access.open_holds(user).count() if isinstance(user, User) else 0


def review_page(user: User, now: datetime, *, before: str = "", after: str = "") -> ReviewPage:
    """A page of the open holds that `user` may see; what is no place in the queue counts as none.

    `after` and `before` are places: what is less urgent than that, or more.
    """
    holds = access.open_holds(user)
    whole = holds.aggregate(total=Count("pk"), oldest=Min("opened_at"))
    rows, more_urgent, less_urgent = rows_at(holds, place(before), place(after))
    decided = None if rows else last_decision(user)
    return ReviewPage(
        rows=tuple(row_of(hold, user, now) for hold in rows),
        export=Export(reverse("review_export")),
        total=whole["total"],
        oldest=whole["oldest"],
        seen=seen_of(holds),
        pager=pager(rows, more_urgent=more_urgent, less_urgent=less_urgent),
        last_decision_at=decided.at if decided else None,
        last_decision_by=decided.by_name if decided else "",
    )


def last_decision(user: User) -> Decision | None:
    visible = Decision.objects.filter(hold__in=access.visible_holds(user))
    return visible.order_by("-at").first()


# --- one row ----------------------------------------------------------------------------------


def row_of(hold: Hold, user: User, now: datetime) -> QueueRow:
    said = sentence_of(hold)
    operation = hold.operation
    late = hold.due_at <= now
    return QueueRow(
        url=url_of(hold),
        id=hold.case_id,
        title=subject_of(hold),
        target=detail_of(hold),
        provider=operation.provider.name if operation else "",
        reason=f"{said.known} {said.unknown}".strip(),
        next_move=said.settles,
        owner=owner_of(hold, user, now),
        held_since=hold.opened_at,
        due_at=hold.due_at,
        amount=amount_of(operation) if operation else "",
        window=window_of(operation, now) if operation else None,
        is_late=late,
        is_soon=not late and hold.due_at - now < SOON,
    )


def target_of(operation: Operation) -> str:
    """Empty where the title says it already."""
    return "" if operation.target in operation.summary else operation.target


def subject_of(hold: Hold) -> str:
    """What is held, in words."""
    if hold.operation is not None:
        return hold.operation.summary
    if hold.event is not None:
        return f"Event {hold.event.type or 'without a type'}"
    return f"{title_of(hold.held_run)}: {hold.held_run.step}"


def detail_of(hold: Hold) -> str:
    """What tells it from others of its kind."""
    if hold.operation is not None:
        return target_of(hold.operation)
    if hold.event is not None:
        return f"“{hold.event.correlation}” from {hold.event.source.name}"
    return label_of(hold.held_run)


def url_of(hold: Hold) -> str:
    """Where a hold is decided: on the page of its operation or event, or on its own."""
    if hold.event_id is not None:
        return reverse("event", args=[hold.event_id])
    if hold.operation_id is not None:
        return reverse("operation", args=[hold.operation_id])
    return reverse("held_run", args=[hold.run_id])


# --- paging by (due time, ID) -----------------------------------------------------------------


def rows_at(
    holds: QuerySet[Hold], before: Place | None, after: Place | None, size: int = PAGE_ROWS
) -> tuple[list[Hold], bool, bool]:
    """A page of `holds`, and whether there are more urgent and less urgent ones."""
    shown = holds.select_related(*SHOWN_WITH).prefetch_related(*with_owners())
    if before is not None:
        due, hold = before
        more = shown.filter(Q(due_at__lt=due) | Q(due_at=due, pk__lt=hold))
        found = list(more.order_by("-due_at", "-pk")[: size + 1])
        return found[:size][::-1], len(found) > size, True
    if after is not None:
        due, hold = after
        shown = shown.filter(Q(due_at__gt=due) | Q(due_at=due, pk__gt=hold))
    found = list(shown.order_by("due_at", "pk")[: size + 1])
    return found[:size], after is not None, len(found) > size


def pager(rows: list[Hold], *, more_urgent: bool, less_urgent: bool) -> Pager:
    here = reverse("review")
    if not rows:
        return Pager(newer=here if more_urgent or less_urgent else "")
    return Pager(
        newer=address(here, {"before": place_of(rows[0])}) if more_urgent else "",
        older=address(here, {"after": place_of(rows[-1])}) if less_urgent else "",
    )


def place_of(hold: Hold) -> str:
    return f"{hold.due_at.astimezone(UTC):%Y%m%dT%H%M%S.%f}-{hold.pk.hex}"


def place(text: str) -> Place | None:
    at, _, hold = text.partition("-")
    pk = as_uuid(hold)
    try:
        due = datetime.strptime(at, "%Y%m%dT%H%M%S.%f").replace(tzinfo=UTC)
    except ValueError:
        return None
    return (due, pk) if pk is not None else None


# --- what is new ------------------------------------------------------------------------------


def seen_of(holds: QuerySet[Hold]) -> str:
    """The queue in a few numbers: its newest hold, how many there are, how often they changed."""
    newest = holds.order_by("-pk").values_list("pk", flat=True).first()
    whole = holds.aggregate(total=Count("pk"), versions=Sum("version"))
    return f"{newest.hex if newest else '0'}-{whole['total']}-{whole['versions'] or 0}"


def news_since(user: User, seen: str) -> str:
    """What happened to the queue since it was `seen`: "2 new, 1 settled."; empty for nothing."""
    holds = access.open_holds(user)
    if seen == seen_of(holds):
        return ""
    newest, total, _ = (*seen.split("-"), "", "", "")[:3]
    known = as_uuid(newest)
    before = int(total) if total.isdecimal() else 0
    new = holds.filter(pk__gt=known).count() if known else holds.count()
    settled = before - (holds.count() - new)
    parts = [f"{new} new"] if new else []
    parts += [f"{settled} settled"] if settled > 0 else []
    return f"{', '.join(parts) or 'Something changed'}."
