"""Whether the page of a run that waits is still what it was: what a poll asks first."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import User

from workflows.core.states import RunState
from workflows.models import Run, Wait
from workflows.selectors.near_events import NEWEST
from workflows.selectors.run_parts import RunParts, rows_of_parts
from workflows.selectors.stamps import READER, REDRAWN_EVERY, TEAM, Stamp, stamp, version_of

# Of a run that is not over: whether only what comes from elsewhere, or its time, moves it.
RESTS = """state = ANY (%(states)s) AND cancel_asked_at IS NULL
            AND (wake_at IS NULL OR wake_at > statement_timestamp())
            AND coalesce(failure ->> 'reason' NOT IN ('children', 'turn'), true)"""
RESTING = [RunState.HELD.value, RunState.WAITING.value]
TENANT = "(SELECT tenant_id FROM run)"
ROWS = (
    *READER,
    version_of("workflows_run", "it.id = %(run)s OR it.id = (SELECT parent_id FROM run)"),
    version_of("workflows_run", "it.parent_id = %(run)s"),
    version_of("workflows_tenant", f"it.id = {TENANT}"),
    version_of("workflows_attempt", "it.run_id = %(run)s"),
    version_of("workflows_wait", "it.run_id = %(run)s"),
    version_of(
        "workflows_match", "it.wait_id IN (SELECT id FROM workflows_wait WHERE run_id = %(run)s)"
    ),
    version_of("workflows_pause", "true"),
    version_of("workflows_proposal", "it.run_id = %(run)s"),
    version_of(
        "workflows_approval",
        "it.proposal_id IN (SELECT id FROM workflows_proposal WHERE run_id = %(run)s)",
    ),
    version_of("workflows_eventsource", f"it.tenant_id = {TENANT}"),
    # What came for one of its waits, and among what those are looked for that came close to it.
    version_of(
        "workflows_event",
        f"it.tenant_id = {TENANT} AND it.state IN ('stored', 'late') AND it.dismissed_at IS NULL"  # noqa: S608
        " AND it.correlation IN (SELECT correlation FROM workflows_wait WHERE run_id = %(run)s)",
    ),
    version_of(
        "workflows_event",
        "it.id IN (SELECT id FROM workflows_event"  # noqa: S608
        f" WHERE tenant_id = {TENANT} AND NOT (state = 'matched') AND dismissed_at IS NULL"
        " AND EXISTS (SELECT FROM workflows_wait WHERE run_id = %(run)s AND state = 'waiting')"
        f" ORDER BY id DESC LIMIT {NEWEST})",
    ),
)
STAMP = """
    WITH {team}, run AS (
        SELECT tenant_id, parent_id, {rests} AS rests
        FROM workflows_run WHERE id = %(run)s
    )
    SELECT statement_timestamp() AS now,
        CASE WHEN (SELECT rests FROM run) THEN md5(concat_ws(' ', {rows})) ELSE '' END AS rows
"""


def run_stamp(user: User, run: UUID) -> Stamp:
    """Of the page of a run for `user`, whether or not they may see it. One query.

    A run that is at work, or waits for others, moves by itself.
    """
    sql = STAMP.format(team=TEAM, rests=RESTS, rows=", ".join((*ROWS, *rows_of_parts())))
    asked = {"user": user.pk, "run": run, "object": f"run:{run}", "states": RESTING}
    return stamp(sql, asked)


def turns_at(run: Run, waits: Iterable[Wait], parts: RunParts, now: datetime) -> datetime:
    """Until when the page stays as it is while no row changes."""
    moments = [run.wake_at, *(wait.deadline for wait in waits), *parts.turns]
    later = [moment for moment in moments if moment is not None and moment > now]
    return min([*later, now + REDRAWN_EVERY])
