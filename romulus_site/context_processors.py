"""What the frame around every page needs: navigation, count of what needs you, who you are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from romulus_site.accounts.sessions import ends_at

SOON = timedelta(minutes=2)  # before its end that a session's end is said (WCAG 2.2.1)
THEMES = ("light", "dark")


@dataclass(frozen=True)
class NavItem:
    """A page in the navigation; `key` follows `g` on the keyboard."""

    text: str
    url: str
    icon: str
    key: str
    current: bool
    counts: bool = False  # shows how much needs the reader
    minor: bool = False  # in the bottom bar of a phone it lies under "More"


class Shell:
    """Worked out only when a template asks: fragments have no frame and cost no query."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request

    @cached_property
    def nav(self) -> list[NavItem]:
        here = self._section
        items = [
            NavItem("Overview", reverse("start"), "overview", "o", here == "overview"),
            NavItem("Review queue", reverse("review"), "queue", "q", here == "review", counts=True),
            NavItem("Approvals", reverse("approvals"), "proposed", "v", here == "approvals"),
            NavItem("Runs", reverse("runs"), "runs", "r", here == "runs"),
            NavItem("Events", reverse("events"), "events", "e", here == "events", minor=True),
            NavItem(
                "Providers", reverse("providers"), "providers", "p", here == "providers", minor=True
            ),
            NavItem("Workers", reverse("workers"), "worker", "w", here == "workers", minor=True),
            NavItem("Audit record", reverse("audit"), "audit", "l", here == "audit", minor=True),
            NavItem(
                "Notifications",
                reverse("notifications"),
                "sending",
                "n",
                here == "notifications",
                minor=True,
            ),
        ]
        if self._request.user.is_staff:
            items.append(
                NavItem("Admin", reverse("admin:index"), "shield", "a", here == "admin", minor=True)
            )
        return items

    @property
    def _section(self) -> str:
        """The list that the page belongs to; empty on error pages."""
        match = self._request.resolver_match
        name = (match.url_name if match else "") or ""
        if match and (match.namespace == "admin" or name.startswith("rights")):
            return "admin"
        if name == "start":
            return "overview"
        if name.startswith(("review", "operation")):
            return "review"
        if name.startswith("event"):
            return "events"
        if name.startswith("approval"):
            return "approvals"
        if name in ("workers", "audit", "notifications"):
            return name
        if name.startswith(("provider", "dispatch")):
            return "providers"
        return "runs" if name.startswith(("run", "version")) else ""

    @cached_property
    def _frame(self) -> Any:
        from reconciliation.selectors.frame import frame_of

        return frame_of(self._request.user, timezone.now())

    @property
    def needs_you(self) -> int:
        return int(self._frame.needs_you)

    @property
    def cases_seen(self) -> str:
        """Of what the counts of cases are, for the poll that keeps them up to date."""
        return str(self._frame.seen)

    @cached_property
    def stops(self) -> list[Any]:
        """What nothing is sent of, said on every page."""
        return list(self._frame.stops)

    @property
    def views(self) -> list[Any]:
        """Ways to look at the review queue, beside every page."""
        return list(self._frame.views)

    @property
    def on_call(self) -> list[Any]:
        """Who answers for the reader's queues now."""
        return list(self._frame.on_call)

    @cached_property
    def live(self) -> bool:
        """Whether pages keep themselves up to date for this person."""
        return bool(self._request.profile.live)  # type: ignore[attr-defined]

    @property
    def letters(self) -> bool:
        """Whether single letters are shortcuts for this person."""
        return bool(self._request.profile.letters)  # type: ignore[attr-defined]

    @cached_property
    def failing_channels(self) -> list[Any]:
        """Those of the reader that fail, said on every page."""
        return list(self._frame.failing)

    @property
    def person(self) -> str:
        user = self._request.user
        return (user.is_authenticated and user.get_full_name()) or user.get_username()

    @property
    def session_ends(self) -> datetime | None:
        """When the session ends by itself; None for one that nobody signed in to."""
        return ends_at(self._request)

    @property
    def session_ends_soon(self) -> bool:
        return self.session_ends is not None and self.session_ends - timezone.now() < SOON

    @property
    def mail_is_logged(self) -> bool:
        """Whether mail goes to the log because no server is set up; reset links stand there."""
        return settings.EMAIL_BACKEND == "django.core.mail.backends.console.EmailBackend"

    @property
    def environment(self) -> str:
        return settings.ROMULUS_ENVIRONMENT

    @property
    def theme(self) -> str:
        """What the person chose; empty while the system decides."""
        chosen = self._request.COOKIES.get("theme", "")
        return chosen if chosen in THEMES else ""


def shell(request: HttpRequest) -> dict[str, Any]:
    """`shell`, and `now` for pages whose view gives none of its own."""
    return {"shell": Shell(request), "now": timezone.now()}
