"""What the frame around every page asks of the database: one query."""

from __future__ import annotations

from typing import NamedTuple

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Count, Subquery

from reconciliation import access
from reconciliation.models import Channel, DispatchStop
from workflows.together import together

BANNER_SHOWN = 3


class Frame(NamedTuple):
    """Attributes:
    needs_you: open holds that the person may see.
    stops: what nothing is sent of, as far as it is theirs to know: the newest first.
    failing: the channels that are theirs to see to and fail: those that failed last come first.
    """

    needs_you: int = 0
    stops: tuple[DispatchStop, ...] = ()
    failing: tuple[Channel, ...] = ()


def frame_of(user: User | AnonymousUser) -> Frame:
    """Nobody has none of it."""
    if not isinstance(user, User):
        return Frame()
    holds = access.open_holds(user).order_by().values("state").annotate(number=Count("pk"))
    failing = access.visible_channels(user).filter(failing_since__isnull=False)
    counted, stops, failing_shown = together(
        User.objects.filter(pk=user.pk).values_list(Subquery(holds.values("number")), flat=True),
        access.visible_stops(user).order_by("-at")[:BANNER_SHOWN],
        failing.select_related("queue", "person").order_by("-failing_since")[:BANNER_SHOWN],
    )
    return Frame(counted[0] or 0, tuple(stops), tuple(failing_shown))
