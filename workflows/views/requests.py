"""What a view of somebody who is signed in is given, and how it answers a poll."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, UTC, datetime, tzinfo
from http import HTTPStatus
from typing import Protocol, Self

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.dateparse import parse_datetime
from django_htmx.middleware import HtmxDetails

from workflows.selectors.stamps import Stamp

MOST_DIGITS = 12  # of a time in an address
STOP_POLLING = 286  # htmx: swap this in, and poll no more


class Preferences(Protocol):
    """What a person has chosen that a view needs."""

    @property
    def zone(self) -> tzinfo: ...


class SignedIn(HttpRequest):
    """A request behind `login_required`, with what the middleware adds."""

    user: User
    htmx: HtmxDetails
    profile: Preferences


class SeeOther(HttpResponseRedirect):
    """303: what was posted is done; the answer is another page, got with GET."""

    status_code = HTTPStatus.SEE_OTHER


def asks_for(request: SignedIn, target: str) -> bool:
    """Whether htmx asks for the fragment `target`; never for a page out of the history."""
    htmx = request.htmx
    return bool(htmx) and not htmx.history_restore_request and htmx.target == target


def fingerprint(page: object) -> str:
    """Something short that changes whenever what `page` shows has changed."""
    return hashlib.sha256(repr(page).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a poll has seen, as its address says it.

    Attributes:
        rows: what the page was made of (`workflows.selectors.stamps`).
        until: when it changes though no row does, in seconds of the epoch.
        told: in which zone, and on which day there, its times are told.
        shown: what it showed of what matters.
    """

    rows: str = ""
    until: int = 0
    told: str = ""
    shown: str = ""

    @classmethod
    def of(cls, stamp: Stamp, until: datetime, shown: str) -> Self:
        return cls(stamp.rows, int(until.timestamp()), stamp.told, shown)

    def __str__(self) -> str:
        return f"{self.rows}.{self.until}.{self.told}.{self.shown}"

    @classmethod
    def by(cls, request: SignedIn) -> Self:
        rows, until, told, shown = (*request.GET.get("seen", "").split(".", 3), "", "", "")[:4]
        known = until.isdecimal() and len(until) < MOST_DIGITS
        return cls(rows, int(until) if known else 0, told, shown)

    def is_of(self, stamp: Stamp) -> bool:
        """Whether the page is what it was; not known of one that moves by itself."""
        same = (self.rows, self.told) == (stamp.rows, stamp.told)
        return bool(stamp.rows) and same and stamp.now.timestamp() < self.until

    def shows(self, known: Self) -> bool:
        """Whether what is `known` now is on the page already, of one that moves by itself; any
        other is given its new stamp."""
        return not known.rows and (self.told, self.shown) == (known.told, known.shown)


def nothing_new(request: SignedIn, seen: str) -> HttpResponse | None:
    """204 when what the poll has `seen` is what there is; else None."""
    if request.GET.get("seen") != seen:
        return None
    return HttpResponse(status=HTTPStatus.NO_CONTENT)


def moment(text: str) -> datetime | None:
    """A time with its zone from an address; None for what is none, or not a time in every zone."""
    try:
        at = parse_datetime(text)
        given = at.astimezone(UTC) if at is not None and at.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
    return given if given is not None and MINYEAR < given.year < MAXYEAR else None
