"""The events and waits page, and one event."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from workflows import access
from workflows.models.ids import id_at
from workflows.selectors.event_lists import RANGES, events_page, sources_of
from workflows.selectors.event_page import event_page
from workflows.selectors.events_asked import Asked, Reader
from workflows.selectors.list_stamps import inbox_stamp
from workflows.selectors.stamps import REDRAWN_EVERY
from workflows.services.clock import database_now
from workflows.together import together
from workflows.views.requests import Seen, SignedIn, asks_for

NAMES = ("view", "state", "source", "range", "wait", "event")
PLACES = ("before", "after", "wbefore", "wafter")
FRAGMENTS = {
    "inbox": "workflows/_inbox_refreshed.html",
    "waits": "workflows/_waits.html",
    "near": "workflows/_near.html",
}


@login_required
@require_safe
def events(request: SignedIn) -> HttpResponse:
    """The events and open waits of the tenants that this person may see."""
    asked = asked_by(request)
    user, before = request.user, Seen.by(request)
    fragment = next((name for name in FRAGMENTS if asks_for(request, name)), "")
    stamp = inbox_stamp(user, asked).read_in(request.profile.zone)
    if fragment == "inbox" and before.is_of(stamp):
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    visible = access.visible_tenants(user)
    tenants, sources, sendable = together(
        visible, sources_of(visible), access.sendable_sources(user).values_list("pk")[:1]
    )
    reader = Reader(
        tenants=tenants,
        sources=sources,
        controlled=frozenset(each.pk for each in tenants if access.may_control(user, each)),
        may_send=bool(sendable),
        zone=request.profile.zone,
    )
    page = events_page(reader, asked)
    known = Seen.of(stamp, stamp.now + REDRAWN_EVERY, "")
    context = {"page": page, "seen": str(known), "now": stamp.now}
    return render(request, FRAGMENTS.get(fragment, "workflows/events.html"), context)


def asked_by(request: SignedIn) -> Asked:
    # NUL is in no text that the database keeps, nor may it be asked for.
    given: dict[str, Any] = {
        name: request.GET.get(name, "").replace("\0", "") for name in (*NAMES, *PLACES)
    }
    asked = Asked(**given)
    back = next((each for each in RANGES if each.key == asked.range), None)
    return replace(asked, since=id_at(timezone.now() - back.length)) if back else asked


@login_required
@require_safe
def event(request: SignedIn, event: UUID) -> HttpResponse:
    """One event. Its body is read for those alone who may see payloads."""
    found = access.event_for(request.user, event, body=False)
    payloads = access.may_view_payloads(request.user, found.tenant)
    if payloads:
        found = access.event_for(request.user, event)
    control = access.may_control(request.user, found.tenant)
    page = event_page(found, request.profile.zone, payloads=payloads, control=control)
    return render(request, "workflows/event.html", {"page": page, "now": database_now()})
