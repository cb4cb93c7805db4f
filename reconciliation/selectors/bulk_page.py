"""A bulk action and the result of each of its cases, for who confirmed it."""

from __future__ import annotations

from datetime import tzinfo
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Count, Q
from django.http import Http404
from django.urls import reverse

from reconciliation import access
from reconciliation.core.review_work import BulkKind, ItemState
from reconciliation.models import BulkAction, BulkItem
from reconciliation.queue_pages import ActionRow, BulkPage, DoneCase
from reconciliation.selectors.queue import subject_of, url_of
from reconciliation.selectors.words import clock, name_of
from workflows.pages import Pager
from workflows.selectors.paging import PAGE_ROWS, address

HIDDEN = "A case that you may not see any more"


def action_for(user: User, action: UUID) -> BulkAction:
    """Raises `Http404` when there is none that this person confirmed; administrators see all."""
    actions = BulkAction.objects.select_related("by", "to")
    found = (actions if user.is_superuser else actions.filter(by=user)).filter(pk=action).first()
    if found is None:
        raise Http404
    return found


def bulk_page(action: BulkAction, user: User, zone: tzinfo, after: str = "") -> BulkPage:
    """Its page, from behind the item with the number `after`."""
    counts = dict(action.items.values_list("state").annotate(number=Count("pk")))
    start = int(after) if after.isdecimal() and len(after) < 6 else 0  # noqa: PLR2004 (a number)
    items = list(
        action.items.filter(number__gt=start)
        .select_related(*(f"hold__{each}" for each in access.SHOWN_WITH))
        .order_by("number")[: PAGE_ROWS + 1]
    )
    shown = items[:PAGE_ROWS]
    visible = access.seen_by(user, [item.hold_id for item in shown])
    here = reverse("review_bulk_action", args=[action.pk])
    settled = sum(number for state, number in counts.items() if state != ItemState.PENDING)
    seen = f"{settled}-{action.ended_at is not None}"
    return BulkPage(
        id=action.pk,
        title=title_of(action, zone),
        poll_url=address(here, {"after": str(start or ""), "seen": seen}),
        by=name_of(action.by),
        made_at=action.made_at,
        ended_at=action.ended_at,
        total=sum(counts.values()),
        done=counts.get(ItemState.DONE, 0),
        skipped=counts.get(ItemState.SKIPPED, 0),
        failed=counts.get(ItemState.FAILED, 0),
        rows=tuple(row_of(item, item.hold_id in visible) for item in shown),
        seen=seen,
        pager=Pager(
            newer=here if start else "",
            older=address(here, {"after": str(shown[-1].number)}) if len(items) > PAGE_ROWS else "",
        ),
    )


def latest_actions(user: User, zone: tzinfo) -> tuple[ActionRow, ...]:
    """What `user` has confirmed for many, the newest first; older ones are found by their address
    and in the audit record."""
    pending = Count("items", filter=Q(items__state=ItemState.PENDING))
    actions = BulkAction.objects.filter(by=user).select_related("to")
    rows = actions.annotate(total=Count("items"), left=pending).order_by("-made_at", "-pk")
    return tuple(
        ActionRow(
            title=title_of(row, zone),
            url=reverse("review_bulk_action", args=[row.pk]),
            made_at=row.made_at,
            ended_at=row.ended_at,
            total=row.total,
            settled=row.total - row.left,
        )
        for row in rows[:PAGE_ROWS]
    )


def title_of(action: BulkAction, zone: tzinfo) -> str:
    match BulkKind(action.kind):
        case BulkKind.ASSIGN:
            return f"Assign to {name_of(action.to) if action.to else 'nobody'}"
        case BulkKind.SNOOZE:
            return f"Snooze until {clock(action.until, zone) if action.until else ''}"
        case BulkKind.REMIND:
            return f"Remind me at {clock(action.until, zone) if action.until else ''}"
        case BulkKind.LOOK_UP:
            return "Look up again"


def row_of(item: BulkItem, visible: bool) -> DoneCase:
    return DoneCase(
        number=item.number,
        title=subject_of(item.hold) if visible else HIDDEN,
        url=url_of(item.hold) if visible else "",
        state=item.state,
        said=item.said,
        ended_at=item.ended_at,
    )
