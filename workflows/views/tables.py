"""A list as a file: any number of rows up to a limit, streamed, and put on record first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import StreamingHttpResponse

from workflows.core.tables import Row, csv_pieces, json_pieces
from workflows.pages import MOST_EXPORTED
from workflows.services.audit import actor_of, record
from workflows.services.clock import database_now
from workflows.views.requests import SignedIn

FORMS = {
    "csv": ("text/csv; charset=utf-8", csv_pieces),
    "json": ("application/json", json_pieces),
}


@dataclass(frozen=True)
class Exported:
    """A list that is exported.

    Attributes:
        name: what it is called in the file's name and on record, such as "runs".
        asked: the filters that are set; they go on record, so no free text is among them.
        among: the rows that are looked at, to be counted; no more than the limit of them are.
        columns, rows: what the file holds.
    """

    name: str
    asked: dict[str, str]
    among: QuerySet[Any]
    columns: Sequence[str]
    rows: Iterable[Row]


def as_table(request: SignedIn, listed: Exported) -> StreamingHttpResponse:
    """Answer with the list as `as` in the form asks, CSV unless it says JSON.

    What is cut off at the limit says so in its file's name: "runs-first-100000.csv".
    """
    form = "json" if request.POST.get("as") == "json" else "csv"
    kind, pieces = FORMS[form]
    number = at_most(listed.among, MOST_EXPORTED + 1)
    cut = number > MOST_EXPORTED
    record(
        actor_of(request.user),
        "exported",
        f"list:{listed.name}",
        form=form,
        filters={name: value for name, value in listed.asked.items() if value},
        rows=min(number, MOST_EXPORTED),
        cut=cut,
    )
    at = f"{database_now():%Y%m%dT%H%M%SZ}"
    name = f"{listed.name}-{at}{f'-first-{MOST_EXPORTED}' if cut else ''}.{form}"
    answer = StreamingHttpResponse(pieces(listed.columns, listed.rows), content_type=kind)
    answer.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    answer.headers["Cache-Control"] = "private, no-store"
    return answer


def at_most(rows: QuerySet[Any], limit: int) -> int:
    """How many there are, counted up to `limit` and no further."""
    return rows.order_by()[:limit].count()
