"""Whether those who answer for cases may decide them: a whole list of cases, in one statement."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from reconciliation.access.in_sql import DECIDES
from reconciliation.access.parts import PART_IN, Parts, asked_for
from reconciliation.models import Hold
from workflows.sql import fetch_of
from workflows.sql.statement import Statement

ASKED = Statement(
    "answering",
    f"""
    SELECT (
        SELECT json_agg(part) FROM ({PART_IN}) part (hold, started_by, approved_by)
    ) AS parts, (
        SELECT json_agg(able) FROM (
            SELECT asked.queue, asked.person
            FROM unnest(%(queues)s::uuid[], %(people)s::int[]) AS asked (queue, person)
            WHERE {DECIDES.format(person="asked.person", queue="asked.queue")}
        ) able
    ) AS able
    """,  # noqa: S608 (constants)
)


@dataclass(frozen=True)
class Answering:
    """Attributes:
    parts: who had a part in each hold.
    decides: of the people of each queue, whether they may decide there.
    """

    parts: Mapping[UUID, Parts]
    decides: Mapping[UUID, Mapping[int, bool]]


def answering_of(holds: Sequence[Hold], people: Mapping[UUID, Collection[int]]) -> Answering:
    """Of `holds`, whose operations come with them, and of the `people` of each queue."""
    pairs = [(str(queue), person) for queue, persons in people.items() for person in persons]
    asked = {"queues": [queue for queue, _ in pairs], "people": [person for _, person in pairs]}
    (row,) = fetch_of(ASKED, asked_for(holds) | asked)
    parts = {
        UUID(each["hold"]): Parts(frozenset(each["started_by"]), frozenset(each["approved_by"]))
        for each in row["parts"] or ()
    }
    able = {(each["queue"], each["person"]) for each in row["able"] or ()}
    decides = {
        queue: {person: (str(queue), person) in able for person in persons}
        for queue, persons in people.items()
    }
    return Answering(parts, decides)
