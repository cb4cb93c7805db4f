"""What the frame around every page asks of the database: one query, where nothing is wrong."""

from __future__ import annotations

from typing import NamedTuple

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Count, Exists, Subquery

from reconciliation import access


class Frame(NamedTuple):
    """Attributes:
    needs_you: open holds that the person may see.
    stopped: whether dispatch is, of something that they may see.
    failing: whether a channel is that is theirs to see to.
    """

    needs_you: int = 0
    stopped: bool = False
    failing: bool = False


def frame_of(user: User | AnonymousUser) -> Frame:
    """Nobody has none of it."""
    if not isinstance(user, User):
        return Frame()
    holds = access.open_holds(user).order_by().values("state").annotate(number=Count("pk"))
    failing = access.visible_channels(user).filter(failing_since__isnull=False)
    found = User.objects.filter(pk=user.pk).annotate(
        needs_you=Subquery(holds.values("number")),
        stopped=Exists(access.visible_stops(user)),
        failing=Exists(failing),
    )
    needs_you, stopped, is_failing = found.values_list("needs_you", "stopped", "failing").get()
    return Frame(needs_you or 0, stopped, is_failing)
