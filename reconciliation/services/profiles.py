"""How a person wants the console. Preferences give no right, so none of it is audited."""

from __future__ import annotations

from zoneinfo import available_timezones

from django.contrib.auth.models import AnonymousUser, User

from reconciliation.models import Profile
from workflows.core.errors import UsageError

UTC_NAMES = frozenset({"", "UTC"})
# In the data of a machine, and no place's time.
NO_ZONES = frozenset({"Factory", "localtime"})


def zone_names() -> list[str]:
    """The time zones of this machine, by their IANA names."""
    return sorted(available_timezones() - NO_ZONES)


def profile_of(user: User | AnonymousUser) -> Profile:
    """The person's preferences; the defaults, not saved, of who has set none, and of nobody."""
    if not isinstance(user, User):
        return Profile()
    try:
        found: Profile = user.profile  # read with the account, where a session's person is
    except Profile.DoesNotExist:
        return Profile(user=user)
    return found


def save_preferences(user: User, *, time_zone: str, letters: bool) -> None:
    """Set the person's time zone, by its IANA name (empty: UTC), and single-key shortcuts.

    Raises `UsageError`: there is no such zone.
    """
    if time_zone not in UTC_NAMES and time_zone not in zone_names():
        raise UsageError(f"There is no time zone “{time_zone}” here. Choose one of the list.")
    chosen = {"time_zone": time_zone, "letters": letters}
    Profile.objects.update_or_create(user=user, defaults=chosen)


def set_live(user: User, *, live: bool) -> None:
    """Let pages keep themselves up to date for this person, or not."""
    Profile.objects.update_or_create(user=user, defaults={"live": live})
