"""What rehearsals of a provider showed, as a table: what was staged by how it ended."""

from __future__ import annotations

from collections.abc import Sequence

from reconciliation.core.rehearsal_ends import End, Staged, staged
from reconciliation.models import Rehearsal
from reconciliation.provider_pages import Cell, Matrix, MatrixRow

COLUMNS = {
    End.AT_ONCE: "Known at once",
    End.LOOK_UP: "Settled by look-up",
    End.REPLAY: "Settled by replay",
    End.HELD: "Held for a person",
    End.OPEN: "Not settled in time",
}
TINTS = 3  # the darkest: every time


def matrix_of(rehearsals: Sequence[Rehearsal]) -> Matrix | None:
    """The cases of `rehearsals`, the latest of one contract; None where none were played."""
    rows = staged(case for each in rehearsals for case in each.cases)
    if not rows:
        return None
    # "Not settled in time" is rare, and shown only where it happened.
    ends = [end for end in End if end is not End.OPEN or any(row.ends.get(end) for row in rows)]
    return Matrix(
        columns=tuple(COLUMNS[end] for end in ends),
        rows=tuple(row_of(row, ends) for row in rows),
        totals=tuple(sum(row.ends.get(end, 0) for row in rows) for end in ends),
        twice=sum(row.twice for row in rows),
        played=sum(row.played for row in rows),
        rehearsals=len(rehearsals),
        latest_at=max(each.ended_at for each in rehearsals),
    )


def row_of(row: Staged, ends: Sequence[End]) -> MatrixRow:
    cells = tuple(cell(row, end) for end in ends)
    return MatrixRow(f"{row.what[:1].upper()}{row.what[1:]}", cells, row.twice)


def cell(row: Staged, end: End) -> Cell:
    count = row.ends.get(end, 0)
    tint = -(-TINTS * count // row.played)
    return Cell(count, f"h{tint}" if count else "z", hold=end in (End.HELD, End.OPEN))
