"""The review queue: what waits for a person, as the address asks for it.

The list is one query, and all counts (tabs, views, saved views) are one more, whatever their
number. Both read open holds alone, over their own indexes.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import (
    Aggregate,
    CharField,
    Count,
    Exists,
    Max,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
)
from django.db.models.functions import Cast
from django.urls import reverse

from reconciliation import access
from reconciliation.core.queue_views import Looked
from reconciliation.models import CaseNote, Decision, Hold, Operation
from reconciliation.pages import Window
from reconciliation.queue_pages import QueueCounts, QueueRow, ReviewPage
from reconciliation.selectors.answering import give_answering
from reconciliation.selectors.queue_chips import chips_of, names_of
from reconciliation.selectors.queue_filters import condition, open_questions, reminded
from reconciliation.selectors.queue_paging import place, place_of, rows_at
from reconciliation.selectors.queue_tabs import (
    SORTED_NOTES,
    saved_shown,
    sorts_of,
    tabs_of,
    views_of,
    ways,
)
from reconciliation.selectors.words import (
    SOON,
    amount_of,
    owner_of,
    sentence_of,
    window_of,
    with_owners,
)
from workflows.pages import Export, Pager
from workflows.selectors.paging import address, as_uuid
from workflows.selectors.words import label_of, title_of

WORDS_SHOWN = 80  # characters of the latest note in a row
# What the rows of holds say something of. No more: each takes the database longer to plan.
ROWS_OF = ("tenant", "run", "event__source", "queue", "assignee", "operation__provider")
# Wide columns of which they say nothing.
NOT_SHOWN = (
    "run__input",
    "event__body",
    *(f"operation__{name}" for name in ("request_sealed", "parameters_redacted", "receipt")),
)


def review_page(
    user: User,
    now: datetime,
    looked: Looked,
    *,
    before: str = "",
    after: str = "",
    focus: str = "",
) -> ReviewPage:
    """A page of the open holds that `user` may see; what is no place in the list counts as none.

    `after` and `before` are places: what comes behind that row, or ahead of it.
    """
    saved = saved_shown(user)
    counts = counted(user, now, ways(looked, saved), looked)
    shown = with_marks(access.open_holds(user).filter(condition(looked, user, now)), user, now)
    sort = looked.sort
    rows, ahead, behind = rows_at(shown, sort, place(before, sort), place(after, sort))
    give_answering(rows)
    decided = None if rows or looked.query() else last_decision(user)
    return ReviewPage(
        rows=tuple(row_of(hold, user, now) for hold in rows),
        export=Export(address(reverse("review_export"), looked.query())),
        looked=looked,
        url=url_at(looked),
        total=counts["shown"],
        all_total=counts["all"],
        oldest=counts["oldest"],
        seen=seen_of(counts),
        tabs=tabs_of(looked, counts),
        views=views_of(looked, counts),
        saved=tuple(each.shown(looked, counts) for each in saved),
        chips=chips_of(looked, names_of(looked, user, rows)),
        sorts=sorts_of(looked),
        sorted_note=SORTED_NOTES.get(sort, ""),
        clear_url=url_at(Looked(tab=looked.tab, sort=sort)),
        save_url=address(reverse("review_save"), looked.query()),
        pager=pager(rows, looked, ahead=ahead, behind=behind),
        last_decision_at=decided.at if decided else None,
        last_decision_by=decided.by_name if decided else "",
        focus=focus,
    )


def queue_counts(user: User, now: datetime, looked: Looked) -> QueueCounts:
    """What the page of `looked` counts, without its rows. Two queries."""
    saved = saved_shown(user)
    counts = counted(user, now, ways(looked, saved), looked)
    return QueueCounts(
        all_total=counts["all"],
        oldest=counts["oldest"],
        ways=(
            *tabs_of(looked, counts),
            *views_of(looked, counts),
            *(each.shown(looked, counts) for each in saved),
        ),
    )


def url_at(looked: Looked) -> str:
    return address(reverse("review"), looked.query())


def last_decision(user: User) -> Decision | None:
    visible = Decision.objects.filter(hold__in=access.visible_holds(user))
    return visible.order_by("-at").first()


# --- counts, and what is new ------------------------------------------------------------------


def counted(
    user: User, now: datetime, wanted: Mapping[str, Looked], looked: Looked
) -> dict[str, Any]:
    """How many holds each of `wanted` shows, by its key; and of the list itself what tells whether
    it has changed. One query over open holds."""
    here = condition(looked, user, now)
    counts = {key: Count("pk", filter=condition(each, user, now)) for key, each in wanted.items()}
    return access.open_holds(user).aggregate(
        all=Count("pk"), oldest=Min("opened_at"), **counts, **told_by(here)
    )


def told_by(here: Q) -> dict[str, Any]:
    return {
        "shown": Count("pk", filter=here),
        "versions": Sum("version", filter=here),
        # An ID as text: the database knows no greatest one of its own kind.
        "newest": Max(Cast("pk", CharField()), filter=here),
    }


def seen_of(counts: Mapping[str, Any]) -> str:
    """The list in a few numbers: its newest hold, how many there are, how often they changed."""
    newest = as_uuid(counts["newest"] or "")
    return f"{newest.hex if newest else '0'}-{counts['shown']}-{counts['versions'] or 0}"


class Seen(Aggregate):
    """`seen_of`, told by the database: Django takes as long to make each of three numbers as the
    database to give them, and every page of the queue asks again and again."""

    template = (
        "concat_ws('-', COALESCE(REPLACE(MAX(%(expressions)s::text), '-', ''), '0'),"
        f" COUNT(*), COALESCE(SUM({Hold._meta.db_table}.version), 0))"
    )
    output_field = CharField()


def parts_of(seen: str) -> tuple[UUID | None, int]:
    """The newest hold of a list that was `seen`, and how many there were."""
    newest, total, *_ = (*seen.split("-"), "", "")
    return as_uuid(newest), int(total) if total.isdecimal() else 0


def news_since(user: User, now: datetime, looked: Looked, seen: str) -> str:
    """What happened to the list since it was `seen`: "2 new, 1 settled."; empty for nothing."""
    holds = access.open_holds(user).filter(condition(looked, user, now))
    present: str = holds.aggregate(seen=Seen("pk"))["seen"]
    if seen == present:
        return ""
    known, before = parts_of(seen)
    _, shown = parts_of(present)
    new = holds.filter(pk__gt=known).count() if known else shown
    gone = before - (shown - new)
    parts = [f"{new} new"] if new else []
    parts += [f"{gone} settled"] if gone > 0 else []
    return f"{', '.join(parts) or 'Something changed'}."


# --- one row ----------------------------------------------------------------------------------


def with_marks(holds: QuerySet[Hold], user: User, now: datetime) -> QuerySet[Hold]:
    """Holds with all that a row says of them."""
    notes = CaseNote.objects.filter(hold=OuterRef("pk"))
    number = notes.order_by().values("hold").annotate(number=Count("pk")).values("number")
    return (
        holds.select_related(*ROWS_OF)
        .defer(*NOT_SHOWN)
        # Of one contract for many rows: it is read, and understood, once.
        .prefetch_related("operation__contract_version", *with_owners())
        .annotate(
            notes_number=Subquery(number),
            last_note=Subquery(notes.order_by("-at", "-pk").values("text")[:1]),
            asks=Exists(open_questions()),
            reminded=reminded(user, now),
        )
    )


def row_of(hold: Hold, user: User, now: datetime) -> QueueRow:
    """The row of a hold that comes with its marks."""
    said = sentence_of(hold)
    operation = hold.operation
    late = hold.due_at <= now
    marks: Any = hold
    snoozed = hold.snoozed_until is not None and hold.snoozed_until > now
    return QueueRow(
        url=url_of(hold),
        id=hold.case_id,
        hold=hold.pk,
        title=subject_of(hold),
        target=detail_of(hold),
        provider=operation.provider.name if operation else "",
        reason=f"{said.known} {said.unknown}".strip(),
        next_move=said.settles,
        owner=owner_of(hold, user, now),
        held_since=hold.opened_at,
        due_at=hold.due_at,
        amount=amount_of(operation) if operation else "",
        window=window_in(operation, now),
        is_late=late,
        is_soon=not late and hold.due_at - now < SOON,
        notes=marks.notes_number or 0,
        last_note=shortened(marks.last_note or ""),
        asks=marks.asks,
        reminded=marks.reminded,
        snoozed_until=hold.snoozed_until if snoozed else None,
    )


def window_in(operation: Operation | None, now: datetime) -> Window | None:
    return window_of(operation, now) if operation else None


def shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= WORDS_SHOWN else words[: WORDS_SHOWN - 1].rstrip() + "…"


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


def pager(rows: list[Hold], looked: Looked, *, ahead: bool, behind: bool) -> Pager:
    here, query = reverse("review"), looked.query()
    if not rows:
        return Pager(newer=address(here, query) if ahead or behind else "")
    first, last = place_of(rows[0], looked.sort), place_of(rows[-1], looked.sort)
    return Pager(
        newer=address(here, query | {"before": first}) if ahead else "",
        older=address(here, query | {"after": last}) if behind else "",
    )
