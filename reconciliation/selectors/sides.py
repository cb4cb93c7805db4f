"""What was intended beside each record that the provider shows; what differs comes first."""

from __future__ import annotations

from collections.abc import Iterator

from reconciliation.core.dashboard import page_of
from reconciliation.core.states import EvidenceKind
from reconciliation.models import Evidence
from reconciliation.pages import Side, Sides
from reconciliation.selectors.case import Case
from workflows.core.near_misses import Piece, side_by_side

RECORDS_SHOWN = 3
HIDDEN = (Piece("hidden"),)
NAMES = {"operation": "our ID"}
# Of these a record is compared with what was meant; a result check is about its state alone.
OF_RECORDS = frozenset({EvidenceKind.RECEIPT, EvidenceKind.LOOKUP, EvidenceKind.CONFLICT})


def sides_of(case: Case) -> tuple[Sides, ...]:
    """The latest sight of each record, the newest first, those that differ before all others."""
    latest: dict[str, Evidence] = {}
    for row in case.evidence:
        if row.kind in OF_RECORDS and (row.differences or row.agreements):
            latest[row.resource] = row
    rows = sorted(latest.values(), key=lambda row: row.observed_at, reverse=True)
    rows.sort(key=lambda row: not row.differences)
    return tuple(sides(case, row) for row in rows[:RECORDS_SHOWN])


def sides(case: Case, row: Evidence) -> Sides:
    return Sides(
        resource=row.resource,
        observed_at=row.observed_at,
        fields=(*differing(case, row), *alike(case, row)),
        differ=len(row.differences),
        dashboard_url=page_of(case.operation.provider.dashboard_url, row.resource),
    )


def differing(case: Case, row: Evidence) -> Iterator[Side]:
    for each in row.differences:
        meant, found = side_by_side(str(each.get("intended", "")), str(each.get("found", "")))
        if not case.payloads:
            meant = found = HIDDEN
        yield Side(named(each), meant, found, same=False)


def alike(case: Case, row: Evidence) -> Iterator[Side]:
    for each in row.agreements:
        text = (Piece(str(each.get("found", ""))),) if case.payloads else HIDDEN
        yield Side(named(each), text, text, same=True)


def named(each: dict[str, str]) -> str:
    field = str(each.get("field", ""))
    return NAMES.get(field, field)
