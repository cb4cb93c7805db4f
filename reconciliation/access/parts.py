"""Who had a part in what a hold is of: who started it, who approved its write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import connection

from reconciliation.core import standing
from reconciliation.models import Hold
from workflows.core.proposals import Answer
from workflows.services.runs import STARTED

if TYPE_CHECKING:
    from django.contrib.auth.models import User


@dataclass(frozen=True)
class Parts:
    """Who had a part in what a hold is of.

    Attributes:
        started_by: who has started its run, or one that it descends from, as the record says.
        approved_by: the accounts that approved its write.
    """

    started_by: frozenset[str] = frozenset()
    approved_by: frozenset[int] = frozenset()

    def started(self, user: User) -> bool:
        return any(actor.startswith(f"user:{user.pk} ") for actor in self.started_by)

    def approved(self, user: User) -> bool:
        return user.pk in self.approved_by

    def why_not_impartial(self, user: User) -> str:
        """What bars `user` whatever their rights; empty when nothing does."""
        return standing.why_not_impartial(self.started(user), self.approved(user))


# However deep the line of runs is; of a write, what was approved when it was first proposed, too.
PART_IN = """
    WITH RECURSIVE line AS (
        SELECT id AS run, id, parent_id FROM workflows_run WHERE id = ANY (%(runs)s::uuid[])
        UNION ALL
        SELECT line.run, above.id, above.parent_id FROM workflows_run above
        JOIN line ON above.id = line.parent_id
    )
    SELECT asked.hold, ARRAY (
        SELECT entry.actor
        FROM line JOIN reconciliation_auditentry entry ON entry.object = 'run:' || line.id
        WHERE line.run = asked.run AND entry.verb = %(started)s
    ), ARRAY (
        SELECT answer.by_id FROM workflows_proposal first
        JOIN workflows_proposal anew USING (root)
        JOIN workflows_approval answer ON answer.proposal_id = anew.id
        WHERE first.id = asked.proposal AND answer.answer = %(approve)s
          AND answer.by_id IS NOT NULL
    )
    FROM unnest(%(holds)s::uuid[], %(runs)s::uuid[], %(proposals)s::uuid[])
        AS asked (hold, run, proposal)
"""


def parts_in(hold: Hold) -> Parts:
    """Who had a part in what the hold, whose operation comes with it, is of."""
    return parts_in_each([hold])[hold.pk]


def parts_in_each(holds: Sequence[Hold]) -> dict[UUID, Parts]:
    """The same of many, with one question."""
    with connection.cursor() as cursor:
        cursor.execute(PART_IN, asked_for(holds))
        return {
            hold: Parts(frozenset(started_by), frozenset(approved_by))
            for hold, started_by, approved_by in cursor.fetchall()
        }


def asked_for(holds: Sequence[Hold]) -> dict[str, Any]:
    """What `PART_IN` is asked with."""
    operations = [hold.operation for hold in holds]
    return {
        "holds": [hold.pk for hold in holds],
        "runs": [hold.run_id for hold in holds],
        "proposals": [each.proposal_id if each is not None else None for each in operations],
        "started": STARTED,
        "approve": Answer.APPROVE.value,
    }
