"""A provider's own page of a record, for people: an address with {resource} where its ID goes.

It is shown as a link to whoever may see the case, so only to a page of the web, at a host that is
written out, and the ID takes up one part of a path or query, whatever is in it.
"""

from __future__ import annotations

import re
from urllib.parse import quote

PLACE = "{resource}"
PATTERN = re.compile(
    r"https?://(?:[A-Za-z0-9-]+\.)*[A-Za-z0-9-]+(?::[0-9]{1,5})?"
    r"(?:[/?#](?:[A-Za-z0-9._~!$&'()*+,;=:@/?%#-]|\{resource\})*)"
)


def pattern_problem(pattern: str) -> str:
    """What is wrong with an address that somebody has set; empty when nothing is."""
    if PLACE not in pattern:
        return f"write {PLACE} where the ID of a record goes"
    if not PATTERN.fullmatch(pattern):
        return f"give an address such as https://dashboard.example.com/refunds/{PLACE}"
    return ""


def page_of(pattern: str, resource: str) -> str:
    """The provider's page of `resource`; empty where there is none, or none that is safe."""
    if not pattern or not resource or pattern_problem(pattern):
        return ""
    return pattern.replace(PLACE, quote(resource, safe=""))
