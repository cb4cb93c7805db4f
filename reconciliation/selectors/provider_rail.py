"""Beside a provider's contract: its switch, and who may do what."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.urls import reverse

from reconciliation import access
from reconciliation.core.facts import Dispatch
from reconciliation.models import DispatchStop, Provider, ReviewQueue
from reconciliation.pages import Owner
from reconciliation.provider_pages import HolderRow, Switch
from reconciliation.selectors.dispatch_page import counts_waiting, row_of, scope_of
from reconciliation.services.dispatch import Scope

MOST_HOLDERS = 50
MOST_STOPS = 5
# What each column of the table of rights stands for.
RIGHT_COLUMNS = {
    "See": {"view_provider", "view_reviewqueue"},
    "Decide, ask": {"decide"},
    "Confirm": {"second"},
    "Assign": {"assign"},
    "Dispatch": {"pause_dispatch"},
    "Set up": {"configure"},
}


def stops_over(provider: Provider, user: User) -> QuerySet[DispatchStop]:
    """The newest of the switches that stop something at the provider, as `user` may see them."""
    covering = Q(provider=provider) | Q(provider=None)
    return access.visible_stops(user).filter(covering).order_by("-at")[:MOST_STOPS]


def own_stop(provider: Provider) -> QuerySet[DispatchStop, str]:
    """How it is stopped as a whole."""
    whole = DispatchStop.objects.filter(provider=provider, tenant=None, action="")
    return whole.values_list("state", flat=True)


def switch_of(
    provider: Provider,
    user: User,
    state: Dispatch,
    stops: Sequence[DispatchStop],
    *,
    may_switch: bool,
) -> Switch:
    waits = counts_waiting([Scope(provider), *map(scope_of, stops)], user) if stops else (0,)
    return Switch(
        state=str(state),
        url=reverse("dispatch_change") if may_switch else "",
        # While nothing is stopped nothing waits for that.
        waits=waits[0],
        per_second=settings.ROMULUS_RELEASE_PER_SECOND,
        stops=tuple(
            row_of(stop, user, number) for stop, number in zip(stops, waits[1:], strict=True)
        ),
    )


def holders_of(
    provider: Provider, queues: Sequence[ReviewQueue], user: User
) -> tuple[HolderRow, ...]:
    """Who may do what to the provider and in those of its `queues` that `user` may see."""
    return tuple(
        HolderRow(
            owner=Owner(holder.name, group=holder.user is None, you=holder.user == user.pk),
            members=holder.members,
            may=tuple(bool(holder.rights & rights) for rights in RIGHT_COLUMNS.values()),
        )
        for holder in access.holders_on(provider, queues)[:MOST_HOLDERS]
    )
