"""What a person may choose of how the console speaks to them."""

from __future__ import annotations

from collections import defaultdict
from functools import cache

from reconciliation.profile_pages import ProfilePage, ZoneGroup
from reconciliation.services.profiles import zone_names

# The zones that people live in are named by region; the rest are aliases and fixed offsets.
REGIONS = frozenset(
    {
        *("Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia"),
        *("Europe", "Indian", "Pacific"),
    }
)


def profile_page(zone: str, *, letters: bool, saved: bool, error: str) -> ProfilePage:
    return ProfilePage(
        time_zone=zone, letters=letters, groups=zone_groups(), saved=saved, error=error
    )


@cache
def zone_groups() -> tuple[ZoneGroup, ...]:
    """The time zones of this machine by region, each with its name and what people call it."""
    regions: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for name in zone_names():
        region, _, place = name.partition("/")
        if region in REGIONS:
            regions[region].append((name, place.replace("_", " ").replace("/", ", ")))
    return tuple(ZoneGroup(region, tuple(zones)) for region, zones in sorted(regions.items()))
