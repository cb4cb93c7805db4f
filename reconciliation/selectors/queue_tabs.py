"""The tabs, views, saved views and orders of the review queue as links, with their counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.urls import reverse

from reconciliation.core.queue_views import Looked, Sort, Tab, View, looked_at
from reconciliation.models import SavedView
from reconciliation.queue_pages import CountedView, SavedRow
from workflows.pages import Filter
from workflows.selectors.paging import address

# What a count says at most: beyond, the number helps nobody.
COUNTED_TO = 1000
SAVED_SHOWN = 24  # one's own and those of one's queues; the rest stands on the page of them

TABS = {Tab.MINE: "Mine", Tab.TEAM: "Team", Tab.ALL: "All held"}
VIEWS = {
    View.UNKNOWN: "Unknown",
    View.CLOSING: "Window closing",
    View.OVERDUE: "Overdue",
    View.UNASSIGNED: "Unassigned",
    View.ASKED: "Asked of me",
    View.REMINDED: "Reminders",
    View.SECOND: "Waiting for a second person",
    View.SNOOZED: "Snoozed",
}
SORTS = {
    Sort.DUE: "Due first",
    Sort.AMOUNT: "Largest amount",
    Sort.WINDOW: "Least protection left",
    Sort.AGE: "Held longest",
}
SORTED_NOTES = {
    Sort.AMOUNT: "Amounts are compared as numbers; currencies are not converted.",
    Sort.WINDOW: "What has no protection that could end comes last. A key that is not relied on "
    "stands where its contract's time would end.",
}


def capped(number: int) -> str:
    return f"{COUNTED_TO:,}+" if number > COUNTED_TO else f"{number:,}"


def counted_view(
    key: str, text: str, looked: Looked, counts: Mapping[str, Any], *, current: bool
) -> CountedView:
    url = address(reverse("review"), looked.query())
    return CountedView(f"way-{key}", text, url, current, capped(counts[key]))


def tab_of(tab: Tab, looked: Looked) -> Looked:
    """A tab begins without a view; filters and order stay."""
    return looked.but(tab=tab, view=None)


def view_of(view: View, looked: Looked) -> Looked:
    """Choosing the view that is chosen already leaves it."""
    return looked.but(view=None if looked.view is view else view)


def ways(looked: Looked, saved: Sequence[Saved]) -> dict[str, Looked]:
    """All that the page counts, by key."""
    return (
        {f"tab_{tab}": tab_of(tab, looked) for tab in Tab}
        | {f"view_{view}": looked.but(view=view) for view in View}
        | {each.key: each.looked for each in saved}
    )


def tabs_of(looked: Looked, counts: Mapping[str, Any]) -> tuple[CountedView, ...]:
    return tuple(
        counted_view(f"tab_{tab}", text, tab_of(tab, looked), counts, current=looked.tab is tab)
        for tab, text in TABS.items()
    )


def views_of(looked: Looked, counts: Mapping[str, Any]) -> tuple[CountedView, ...]:
    return tuple(
        counted_view(
            f"view_{view}", text, view_of(view, looked), counts, current=looked.view is view
        )
        for view, text in VIEWS.items()
    )


def sorts_of(looked: Looked) -> tuple[Filter, ...]:
    here = reverse("review")
    return tuple(
        Filter(text, address(here, looked.but(sort=sort).query()), looked.sort is sort)
        for sort, text in SORTS.items()
    )


# --- saved views ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Saved:
    """A saved view, with the way to look at the queue that it keeps."""

    view: SavedView
    looked: Looked

    @property
    def key(self) -> str:
        return f"saved_{self.view.pk.hex}"

    def shown(self, looked: Looked, counts: Mapping[str, Any]) -> CountedView:
        return counted_view(
            self.key, self.view.name, self.looked, counts, current=looked == self.looked
        )


def saved_shown(user: User) -> list[Saved]:
    """The views that a person keeps, and those of the queues that they own."""
    views = saved_for(user).order_by("name", "pk")[:SAVED_SHOWN]
    return [Saved(view, looked_at(dict(parse_qsl(view.query)))) for view in views]


def saved_for(user: User) -> QuerySet[SavedView]:
    return SavedView.objects.filter(Q(person=user) | Q(queue__owners=user)).distinct()


def saved_rows(user: User) -> tuple[SavedRow, ...]:
    """All of them, for the page where they are removed: at most so many as may be kept."""
    views = saved_for(user).select_related("queue").order_by("name", "pk")
    return tuple(
        SavedRow(
            name=view.name,
            url=address(reverse("review"), looked_at(dict(parse_qsl(view.query))).query()),
            whose=f"Owners of {view.queue.name}" if view.queue else "Only you",
            made_by=view.made_by,
            made_at=view.made_at,
            remove_url=reverse("review_unsave", args=[view.pk]),
        )
        for view in views
    )
