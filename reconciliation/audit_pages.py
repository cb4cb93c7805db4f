"""What the page of the audit record shows: filled by `selectors.audit_page`, read by
`templates/reconciliation/audit.html`. Plain data, as in `pages`.

`audit` (`?before=`, `?object=`, `?actor=`) answers `audit.html` with {"page": AuditPage, "now"}. It
is not polled: what is on the record stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from workflows.pages import Fact, Pager


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One entry; `hash` are the first digits of the one that the next entry is chained to."""

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


@dataclass(frozen=True, slots=True)
class AuditPage:
    """`object` and `actor` are what the entries are narrowed down to; empty for all."""

    rows: Sequence[AuditRow]
    object: str
    actor: str
    pager: Pager
