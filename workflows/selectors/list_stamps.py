"""Whether a list is still what it was: what a poll of runs, of the inbox or of workers asks first.

Each is made of the very rows of its page, read from an index of each tenant that may be seen, and
of what is counted beside them.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User

from workflows.core.states import RunState
from workflows.models.event import AMBIGUOUS
from workflows.rights import VISIBLE_TENANTS, asked_for
from workflows.selectors import event_lists, events_asked, run_list, worker_list
from workflows.selectors.paging import PAGE_ROWS, as_uuid
from workflows.selectors.run_stamp import RESTING, RESTS
from workflows.selectors.stamps import Stamp, stamp, stamp_of_list, version_of

VISIBLE = "(SELECT id FROM visible)"
# As an array, which no planner turns about.
PAGE = "ANY (ARRAY(SELECT id FROM page))"


def page_of(
    table: str, columns: str, chosen: str, place: tuple[str, str], *, of_state: bool = False
) -> str:
    """The SQL for a page of those rows of `table` that are `chosen`, and one more; `place` is what
    is asked for before and after it, as `paging.newest_first` has it.

    `of_state`: only those in the state that is asked for, by an index on tenant, state and ID.
    """
    before, after = map(as_uuid, place)
    bound = "id > %(after)s" if after else "id < %(before)s" if before else "true"
    order = within = "id" if after else "id DESC"
    if of_state:
        # As a range, and in its order: for one value the planner may go through the newest rows of
        # all states, since it does not know how the states lie in time.
        chosen += " AND state >= %(state)s AND state <= %(state)s"
        within = "state DESC, id" if after else "state, id DESC"
    of_tenant = (
        f"SELECT id, {columns} FROM {table}"  # noqa: S608
        f" WHERE tenant_id = visible.id AND {chosen} AND {bound}"
        f" ORDER BY {within} LIMIT {PAGE_ROWS + 1}"
    )
    return (
        f"page AS (SELECT it.* FROM visible, LATERAL ({of_tenant}) it"  # noqa: S608
        f" ORDER BY {order} LIMIT {PAGE_ROWS + 1})"
    )


def placed(before: str, after: str) -> dict[str, Any]:
    return {"before": as_uuid(before), "after": as_uuid(after)}


# --- runs -------------------------------------------------------------------------------------

OF_PAGE = "(SELECT id, step, visit FROM page)"
WAITS = (
    "(SELECT id FROM workflows_wait"  # noqa: S608
    f" WHERE run_id = {PAGE} AND (run_id, step, visit) IN {OF_PAGE})"
)
MATCHES = f"(SELECT event_id FROM workflows_match WHERE wait_id IN {WAITS})"  # noqa: S608
RUNS = (
    version_of("workflows_tenant", f"it.id IN {VISIBLE}"),
    version_of("workflows_run", f"it.id = {PAGE}"),
    # Those that started them, and the one whose runs are listed.
    version_of(
        "workflows_run", "it.id = ANY (ARRAY(SELECT parent_id FROM page)) OR it.id = %(parent)s"
    ),
    version_of("workflows_pause", "true"),
    # How those ended, or stand, that they wait for at their present step.
    version_of("workflows_wait", f"it.id IN {WAITS}"),
    version_of("workflows_match", f"it.wait_id IN {WAITS}"),
    version_of("workflows_event", f"it.id IN {MATCHES}"),
    version_of("workflows_eventsource", f"it.tenant_id IN {VISIBLE}"),
)
# A wait whose time is over is for the workers, as is a run that does not rest.
ALL_REST = f"""
    (SELECT bool_and(over OR rests) FROM page) IS NOT FALSE AND NOT EXISTS (
        SELECT FROM workflows_wait it
        WHERE it.id IN {WAITS} AND it.state = 'waiting' AND it.deadline <= statement_timestamp()
    )"""  # noqa: S608 (constants)


def runs_stamp(user: User, asked: run_list.Asked) -> Stamp:
    """Of the page of runs that `user` asks for. Where one of them is at work, or waits for others,
    the list moves by itself."""
    parent = as_uuid(asked.parent)
    among = "parent_id IS NULL"
    if parent is not None:
        among = "parent_id = %(parent)s"
    elif asked.children == run_list.WITH:
        among = "true"
    of_state = asked.state in set(RunState)
    columns = f"parent_id, step, visit, finished_at IS NOT NULL AS over, {RESTS} AS rests"
    place = (asked.before, asked.after)
    page = page_of("workflows_run", columns, among, place, of_state=of_state)
    counts = (
        "(SELECT string_agg(concat(state, number), ' ' ORDER BY tenant_id, state) FROM ("  # noqa: S608
        "SELECT tenant_id, state, count(*) AS number FROM workflows_run"
        f" WHERE finished_at IS NULL AND state = ANY (%(names)s) AND {among}"
        f" GROUP BY tenant_id, state) counted WHERE tenant_id IN {VISIBLE})"
    )
    sql = (
        f"WITH {VISIBLE_TENANTS}, {page} SELECT statement_timestamp() AS now, CASE WHEN {ALL_REST}"
        f" THEN md5(concat_ws(' ', {', '.join((*RUNS, counts))})) ELSE '' END AS rows"
    )
    wanted = {
        "parent": parent,
        "state": asked.state,
        "states": RESTING,
        "names": [state.value for state in run_list.UNFINISHED],
    }
    return stamp_of_list(sql, asked_for(user) | placed(asked.before, asked.after) | wanted)


# --- events -----------------------------------------------------------------------------------

TO_ACT_ON = "NOT (state = 'matched') AND dismissed_at IS NULL"
KIND = f"CASE WHEN ambiguous_at IS NOT NULL THEN '{AMBIGUOUS}' ELSE state END"
OF_SOURCE = "FROM workflows_eventsource WHERE slug = %(slug)s"
GIVEN = f"(SELECT wait_id FROM workflows_match WHERE event_id = {PAGE})"  # noqa: S608
TALLY = f"""
    (SELECT string_agg(concat(kind, number), ' ' ORDER BY kind) FROM (
        SELECT kind, count(*) AS number FROM (
            SELECT {KIND} AS kind FROM workflows_event
            WHERE tenant_id IN {VISIBLE} AND {TO_ACT_ON}
                AND (%(since)s::uuid IS NULL OR id >= %(since)s) LIMIT {events_asked.COUNTED}
        ) among GROUP BY kind
    ) counted)"""  # noqa: S608 (constants)
INBOX = (
    version_of("workflows_tenant", f"it.id IN {VISIBLE}"),
    version_of("workflows_eventsource", f"it.tenant_id IN {VISIBLE}"),
    version_of("workflows_event", f"it.id = {PAGE}"),
    version_of("workflows_match", f"it.event_id = {PAGE}"),
    version_of("workflows_wait", f"it.id IN {GIVEN}"),
    version_of(
        "workflows_run",
        f"it.id IN (SELECT run_id FROM workflows_wait WHERE id IN {GIVEN})",  # noqa: S608
    ),
    TALLY,
)


def inbox_stamp(user: User, asked: events_asked.Asked) -> Stamp:
    """Of the inbox and the tally that `user` asks for: what the page of events polls."""
    chosen = [TO_ACT_ON] if asked.view != event_lists.ALL or asked.state else []
    if asked.state in event_lists.KINDS:
        chosen.append(f"{KIND} = %(state)s")
    if asked.source:
        chosen.append(f"tenant_id = (SELECT tenant_id {OF_SOURCE})")
        chosen.append(f"source_id = (SELECT id {OF_SOURCE})")
    if asked.since:
        chosen.append("id >= %(since)s")
    place = (asked.before, asked.after)
    page = page_of("workflows_event", "state", " AND ".join(chosen) or "true", place)
    sql = (
        f"WITH {VISIBLE_TENANTS}, {page}"
        f" SELECT statement_timestamp() AS now, md5(concat_ws(' ', {', '.join(INBOX)})) AS rows"
    )
    wanted = {"state": asked.state, "slug": asked.source, "since": asked.since}
    return stamp_of_list(sql, asked_for(user) | placed(*place) | wanted)


# --- workers ----------------------------------------------------------------------------------

SHOWN = """
    ANY (ARRAY(
        SELECT id FROM workflows_worker
        WHERE seen_at > statement_timestamp() - make_interval(secs => %(lately)s)
        UNION SELECT lease_owner FROM workflows_run WHERE state = 'running'
    ))"""
OF_VISIBLE = f"FROM workflows_run WHERE tenant_id IN {VISIBLE}"
WORKERS = (
    version_of("workflows_tenant", f"it.id IN {VISIBLE}"),
    version_of("workflows_worker", f"it.id = {SHOWN}"),
    version_of("workflows_run", f"it.state = 'running' AND it.tenant_id IN {VISIBLE}"),
    "(SELECT count(*) FROM workflows_worker"
    " WHERE seen_at > statement_timestamp() - make_interval(secs => %(lease)s))",
    f"(SELECT count(*) {OF_VISIBLE} AND state = 'ready')",
    f"(SELECT count(*) {OF_VISIBLE} AND state = 'running'"
    " AND lease_expires_at <= statement_timestamp())",
)
OF_WORKERS = (
    f"WITH {VISIBLE_TENANTS}"
    f" SELECT statement_timestamp() AS now, md5(concat_ws(' ', {', '.join(WORKERS)})) AS rows"
)


def workers_stamp(user: User) -> Stamp:
    """Of the page of workers for `user`. While one is alive it says so every few seconds."""
    lately = worker_list.LATELY.total_seconds()
    asked = {"lease": float(settings.ROMULUS_LEASE_SECONDS), "lately": lately}
    return stamp(OF_WORKERS, asked_for(user) | asked)
