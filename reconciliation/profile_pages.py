"""What the page of a person's own preferences shows. Plain data without Django.

`profile` (GET, POST of `time_zone` and `letters`): `profile.html` with {"page": ProfilePage,
"now"}, 422 with `page.error`; saved: 303 to itself with `?saved=1`. `profile_live` (POST of
`live`, `on` or `paused`): 303 to `profile`, to htmx 204.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ZoneGroup:
    """The time zones of one region, each by its IANA name and what people call it."""

    region: str
    zones: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ProfilePage:
    time_zone: str
    letters: bool
    groups: tuple[ZoneGroup, ...]
    saved: bool = False
    error: str = ""
