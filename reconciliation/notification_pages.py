"""What the page of notifications shows: filled by `selectors.notification_page`, read by
`templates/reconciliation/notifications.html`. Plain data, as in `pages`.

`notifications` (`?before=`/`?after=`) answers `notifications.html` with {"page":
NotificationsPage, "form", "errors", "digest_at", "now"}; it is not polled.
`notifications_digest`, POST of `every at zone`: 303 to `notifications`, or the page with `errors`
by field as 422.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from reconciliation.pages import Owner
from workflows.pages import Link, Pager


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """A channel that is the reader's to see to; `state` is works, failing, stopped or off."""

    name: str
    address: str
    state: str
    since: datetime | None
    problem: str
    used_at: datetime | None
    setup_url: str


@dataclass(frozen=True, slots=True)
class MessageRow:
    """What left, or is to leave, by one of those channels; `about` is its first case."""

    what: str
    about: Link | None
    count: int
    channel: str
    state: str
    created_at: datetime
    attempts: int
    problem: str


@dataclass(frozen=True, slots=True)
class DutyRow:
    """Who is on call for a queue; `until` is when that changes."""

    queue: str
    people: Sequence[Owner]
    until: datetime | None

    @property
    def is_powerless(self) -> bool:
        """Somebody is on call, and nobody of them may decide."""
        return bool(self.people) and all(person.barred for person in self.people)


@dataclass(frozen=True, slots=True)
class UnreachedRow:
    """What was told to nobody, because nobody who may hear it has a channel that works."""

    what: str
    about: Link | None
    at: datetime


@dataclass(frozen=True, slots=True)
class NotificationsPage:
    """`mailbox` is where the reader's e-mail goes by default; empty: nowhere, and `no_mail` may say
    why."""

    channels: Sequence[ChannelRow]
    messages: Sequence[MessageRow]
    on_call: Sequence[DutyRow]
    unreached: Sequence[UnreachedRow]
    mailbox: str
    no_mail: str
    pager: Pager
