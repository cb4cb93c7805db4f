"""Where somebody is signed in, and ending one of those sessions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils import timezone

from workflows.services import audit
from workflows.services.audit import actor_of

SHOWN = 50  # more sessions of one person than anybody reads; ending all others ends the rest too

# Enough to know one's own machine again; browsers name themselves after each other.
BROWSERS = {"Edg/": "Edge", "OPR/": "Opera", "Firefox/": "Firefox", "Chrome/": "Chrome"}
BROWSERS |= {"Safari/": "Safari"}
SYSTEMS = {"iPhone": "iPhone", "iPad": "iPad", "Android": "Android", "Windows": "Windows"}
SYSTEMS |= {"Macintosh": "macOS", "Linux": "Linux"}


def begin(request: HttpRequest) -> None:
    """Let the session end at a fixed time from now, whatever is done and polled in it.

    By this machine's clock, as Django ends sessions.
    """
    request.session.set_expiry(timezone.now() + timedelta(seconds=settings.SESSION_COOKIE_AGE))


def ends_at(request: HttpRequest) -> datetime | None:
    """When the session will end, as `begin` has fixed it; None where it has not."""
    fixed = "_session_expiry" in request.session
    return request.session.get_expiry_date() if fixed else None


@dataclass(frozen=True, slots=True)
class SessionRow:
    id: int
    machine: str
    address: str
    since: datetime
    ends_at: datetime
    current: bool


def open_sessions(user: User) -> QuerySet[UserSession]:
    """Those that have not ended, with when they will, the latest first."""
    rows = Session.objects.filter(session_key=OuterRef("session_key"), expire_date__gt=Now())
    ends = Subquery(rows.values("expire_date")[:1])
    found: QuerySet[UserSession] = (
        UserSession.objects.filter(user=user)
        .annotate(ends_at=ends)
        .exclude(ends_at=None)
        .order_by("-pk")
    )
    return found


def session_rows(user: User, current: str | None) -> list[SessionRow]:
    """What is shown of them; `current` is the key of the session that asks."""
    return [
        SessionRow(
            id=row.pk,
            machine=machine_of(row.user_agent),
            address=row.ip,
            since=row.created_at,
            ends_at=row.ends_at,
            current=row.session_key == current,
        )
        for row in open_sessions(user)[:SHOWN]
    ]


def machine_of(user_agent: str) -> str:
    """ "Firefox on Linux", as far as a browser tells."""
    browser = next((name for mark, name in BROWSERS.items() if mark in user_agent), "")
    system = next((name for mark, name in SYSTEMS.items() if mark in user_agent), "")
    return " on ".join(filter(None, (browser, system))) or "An unknown browser"


def forget_ended() -> int:
    """Delete the sessions that have ended, and what was noted of them; return how many."""
    ended, _ = Session.objects.filter(expire_date__lt=Now()).delete()
    gone = ~Exists(Session.objects.filter(session_key=OuterRef("session_key")))
    # One that was just begun may be noted before it is there.
    UserSession.objects.filter(gone, created_at__lt=Now() - timedelta(days=1)).delete()
    return int(ended)


@transaction.atomic
def end_sessions(
    user: User, *, only: int | None = None, keep: str | None = None, by: User | None = None
) -> int:
    """End a person's sessions, on record: at their next request they have to sign in.

    Args:
        only: the session that is meant; None means all of them.
        keep: the key of one that goes on.
        by: who ends them, where it is not that person.

    Returns: how many were ended; 0 when they had ended already, or are another person's.
    """
    # All of them, open or not: a row without a session is of no use to anybody.
    rows = UserSession.objects.filter(user=user).exclude(session_key=keep)
    if only is not None:
        rows = rows.filter(pk=only)
    keys = list(rows.values_list("session_key", flat=True))
    ended, _ = Session.objects.filter(session_key__in=keys, expire_date__gt=Now()).delete()
    UserSession.objects.filter(session_key__in=keys).delete()
    if ended:
        audit.record(actor_of(by or user), "ended sessions", f"user:{user.pk}", number=ended)
    return int(ended)
