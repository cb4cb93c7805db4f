"""What of the audit record is asked for, as an address says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Self


@dataclass(frozen=True, slots=True)
class AuditAsked:
    """Which entries are meant; what is empty is any.

    Attributes:
        who: a username, or an actor as the record names them, such as "system".
        verb: what was done, as the record says it.
        object: the ID of a run, operation, event or tenant, or as the record names it.
        since, until: times in UTC, "2026-03-10" or "2026-03-10T03:12"; what cannot be read counts
            as not said.
        before: the number of an entry: only what is older than that.
    """

    who: str = ""
    verb: str = ""
    object: str = ""
    since: str = ""
    until: str = ""
    before: str = ""

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Self:
        # NUL is in no text that the database keeps, nor may it be asked for.
        names = (each.name for each in fields(cls))
        return cls(**{name: given.get(name, "").replace("\0", "").strip() for name in names})

    def query(self, **changes: str) -> dict[str, str]:
        """The address of this choice from its newest entry on, with `changes`."""
        kept = {each.name: getattr(self, each.name) for each in fields(self)}
        return kept | {"before": ""} | changes

    @property
    def is_narrowed(self) -> bool:
        return any(self.query().values())


def moment(text: str) -> datetime | None:
    """A time of an address, in UTC unless it says otherwise; None for what is none."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
