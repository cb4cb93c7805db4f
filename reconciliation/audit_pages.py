"""What the page of the audit record shows: filled by `selectors.audit_page`, read by
`templates/reconciliation/audit.html`. Plain data, as in `pages`.

- `audit` (`?who=`, `?verb=`, `?object=`, `?since=`, `?until=`, `?before=`) answers `audit.html`
  with {"page": AuditPage, "now"}. It is not polled: what is on the record stays as it is.
- `audit_export` (POST of `as`, with the same in its address) answers the entries as a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from reconciliation.core.audit_asked import AuditAsked
from workflows.pages import Export, Fact, Pager


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One entry; `hash` is the one that the next entry is chained to, and `fits` whether it is
    the hash of what the entry says."""

    number: int
    at: datetime
    actor: str
    actor_url: str
    verb: str
    object: str
    object_url: str
    object_entries_url: str
    reason: str
    facts: Sequence[Fact]
    hash: str
    fits: bool


@dataclass(frozen=True, slots=True)
class ChainCheck:
    """The latest check of the whole chain, up to entry `upto`; `broken` is the first entry that
    does not fit, None when all do."""

    at: datetime
    by: str
    upto: int
    broken: int | None


@dataclass(frozen=True, slots=True)
class AuditPage:
    """`asked` is what the entries are narrowed down to; `object` and `actor` name it for people."""

    rows: Sequence[AuditRow]
    asked: AuditAsked
    object: str
    actor: str
    verbs: Sequence[str]
    check: ChainCheck | None
    export: Export
    pager: Pager

    @property
    def misfits(self) -> int:
        return sum(not row.fits for row in self.rows)
