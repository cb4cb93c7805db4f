"""Whether the people who are named beside cases may decide them, for a list of cases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from reconciliation.access import answering_of
from reconciliation.models import Hold
from reconciliation.selectors.words import owners_of


def give_answering(holds: Sequence[Hold]) -> None:
    """Put what bars those whom `owner_of` may name where it reads that; `holds` come as they do for
    it, each with its operation. One query."""
    people: dict[UUID, set[int]] = defaultdict(set)
    for hold in holds:
        if hold.queue_id is not None:
            people[hold.queue_id] |= named_in(hold)
    known = answering_of(holds, people)
    row: Any
    for row in holds:
        row.its_parts = known.parts[row.pk]
        if row.queue is not None:
            row.queue.its_deciders = known.decides[row.queue_id]


def named_in(hold: Hold) -> set[int]:
    """Who may be named in the queue of a hold; several owners are where none of them may decide."""
    queue: Any = hold.queue
    people = {shift.person_id for shift in queue.its_shifts}
    people |= {owner.pk for owner in owners_of(hold)}
    return people | ({hold.assignee_id} if hold.assignee_id is not None else set())
