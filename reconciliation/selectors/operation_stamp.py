"""Whether the page of a held operation is still what it was: what a poll asks first."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from uuid import UUID

from django.contrib.auth.models import User

from reconciliation.core.standing import FRESH
from reconciliation.pages import CLOSING
from reconciliation.selectors.case import Case
from reconciliation.selectors.evidence import gives_up_at
from reconciliation.selectors.words import next_on_call
from workflows.selectors.stamps import READER, REDRAWN_EVERY, TEAM, Stamp, stamp, version_of

IN_FORCE = "it.until IS NULL OR it.until > statement_timestamp()"
OF_IT = "it.operation_id = %(operation)s"
OF_HOLDS = "it.hold_id IN (SELECT id FROM reconciliation_hold WHERE operation_id = %(operation)s)"
OF_QUEUES = "(SELECT id FROM queue)"
PEOPLE = "(SELECT id FROM person)"
ROWS = (
    *READER,
    version_of(
        "reconciliation_operation",
        "it.id = %(operation)s OR it.supersedes_id = %(operation)s"
        " OR it.compensates_id = %(operation)s",
    ),
    version_of("workflows_run", "it.id IN (SELECT run_id FROM operation)"),
    # The run that waits for its end, and the branches beside it.
    version_of("workflows_run", "it.id IN (SELECT parent_id FROM operation)"),
    version_of(
        "workflows_run",
        "(it.parent_id, it.parent_step, it.parent_visit)"
        " IN (SELECT parent_id, parent_step, parent_visit FROM operation)"
        " AND (it.workflow, it.version) IN (SELECT workflow, version FROM operation)"
        " AND it.state <> 'completed'",
    ),
    version_of("workflows_tenant", "it.id = (SELECT tenant_id FROM operation)"),
    version_of("reconciliation_provider", "it.id = (SELECT provider_id FROM operation)"),
    *(
        version_of(f"reconciliation_{name}", OF_IT)
        for name in ("transmission", "evidence", "hold", "decision", "decisionproposal")
    ),
    version_of(
        "reconciliation_proposalend",
        "it.proposal_id IN (SELECT id FROM reconciliation_decisionproposal"
        " WHERE operation_id = %(operation)s)",
    ),
    # What its head says of who works on it.
    version_of("reconciliation_casenote", OF_HOLDS),
    version_of("reconciliation_reminder", OF_HOLDS),
    version_of("reconciliation_auditentry", "it.object = %(object)s AND it.verb = 'asked'"),
    version_of("reconciliation_dispatchstop", IN_FORCE),
    # What others have approved of it, and whether it would still be allowed.
    version_of("workflows_proposal", "it.root = (SELECT root FROM proposed)"),
    version_of(
        "workflows_approval",
        "it.proposal_id IN (SELECT id FROM workflows_proposal"
        " WHERE root = (SELECT root FROM proposed))",
    ),
    version_of(
        "workflows_policyversion",
        "it.tenant_id IS NULL OR it.tenant_id = (SELECT tenant_id FROM operation)",
    ),
    # Who answers for it, and may.
    version_of("reconciliation_reviewqueue", f"it.id IN {OF_QUEUES}"),
    version_of("reconciliation_reviewqueue_owners", f"it.reviewqueue_id IN {OF_QUEUES}"),
    version_of("reconciliation_shift", f"it.queue_id IN {OF_QUEUES}"),
    version_of("auth_user", f"it.id IN {PEOPLE}"),
    version_of("auth_user_groups", f"it.user_id IN {PEOPLE}"),
    version_of(
        "guardian_userobjectpermission",
        f"it.user_id IN {PEOPLE} AND it.object_pk IN (SELECT id::text FROM queue)",  # noqa: S608
    ),
    version_of(
        "guardian_groupobjectpermission",
        "it.object_pk IN (SELECT id::text FROM queue)"  # noqa: S608
        f" AND it.group_id IN (SELECT group_id FROM auth_user_groups WHERE user_id IN {PEOPLE})",
    ),
)
# While nobody holds it, it moves by itself.
STAMP = f"""
    WITH {TEAM}, operation AS (
        SELECT it.state, it.run_id, it.provider_id, it.proposal_id, run.tenant_id,
            run.parent_id, run.parent_step, run.parent_visit, run.workflow, run.version
        FROM reconciliation_operation it JOIN workflows_run run ON run.id = it.run_id
        WHERE it.id = %(operation)s
    ), proposed AS (
        SELECT root FROM workflows_proposal WHERE id = (SELECT proposal_id FROM operation)
    ), queue AS (
        SELECT id FROM reconciliation_reviewqueue
        WHERE provider_id = (SELECT provider_id FROM operation)
        UNION SELECT default_queue_id FROM reconciliation_provider
        WHERE id = (SELECT provider_id FROM operation)
        UNION SELECT queue_id FROM reconciliation_hold WHERE operation_id = %(operation)s
    ), person AS (
        SELECT user_id AS id FROM reconciliation_reviewqueue_owners
        WHERE reviewqueue_id IN {OF_QUEUES}
        UNION SELECT person_id FROM reconciliation_shift WHERE queue_id IN {OF_QUEUES}
        UNION SELECT assignee_id FROM reconciliation_hold WHERE operation_id = %(operation)s
    )
    SELECT statement_timestamp() AS now,
        CASE WHEN (SELECT state FROM operation) = 'held' THEN md5(concat_ws(' ', {", ".join(ROWS)}))
        ELSE '' END AS rows
"""  # noqa: S608 (constants)


def operation_stamp(user: User, operation: UUID) -> Stamp:
    """Of the page of an operation for `user`, whether or not they may see it. One query."""
    asked = {"user": user.pk, "operation": operation, "object": f"operation:{operation}"}
    return stamp(STAMP, asked)


def turns_at(case: Case) -> datetime:
    """Until when the page stays as it is while no row changes."""
    later = [moment for moment in moments(case) if moment > case.now]
    return min([*later, case.now + REDRAWN_EVERY])


def moments(case: Case) -> Iterator[datetime]:
    """When something about the case is to be said otherwise; some of them say nothing."""
    look_up, ends = case.contract.look_up, case.operation.replay_not_after
    if ends is not None:
        yield from (ends, ends - CLOSING)
    for hold in case.holds:
        yield hold.due_at
        change = next_on_call(hold, case.now)
        if change is not None:
            yield change
    if case.asked:
        yield gives_up_at(case)
    for said in case.evidence:
        yield said.observed_at + FRESH
        if said.retry_after_at is not None:
            yield said.retry_after_at
    lengths = [0.0]
    if look_up is not None:
        lengths += [look_up.visibility_lag_seconds, look_up.absence_proof_after_seconds or 0.0]
    for send in case.transmissions:
        yield from (send.in_flight_until + timedelta(seconds=length) for length in lengths)
    yield from (stop.until for stop in case.stops if stop.until is not None)
