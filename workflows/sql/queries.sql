-- The hot statements of the execution record. Each is one round trip and one commit, prepared once
-- per connection. Lock order everywhere: what waits and events are matched under (`lock_matching`),
-- parent run, run, then what belongs to it: its wait, then events. The clock is
-- the database's, at the start of the statement, as in Django's own Now().
-- An attempt's row is written when the attempt ends; until then its facts are columns of the run.

-- start_runs --
-- Store runs of one tenant that are checked; those whose start key was used before are left out.
INSERT INTO workflows_run
    (id, workflow, version, tenant_id, step, visit, input, labels, start_key, state, failure,
     parent_id, parent_step, parent_visit, parent_index, created_at, ready_at, fence, tries,
     failures, losses, cancel_asked_by, paused_by)
SELECT n.id, n.workflow, n.version, %(tenant)s, n.step, 1, n.input::jsonb, n.labels::jsonb,
    n.start_key, n.state, n.failure::jsonb, %(parent)s, %(parent_step)s, %(parent_visit)s, n.place,
    statement_timestamp(), statement_timestamp(), 0, 0, 0, 0, '', ''
FROM unnest(
    %(runs)s, %(names)s, %(versions)s, %(steps)s, %(inputs)s, %(labels)s, %(start_keys)s,
    %(states)s, %(failures)s, %(places)s
) AS n (id, workflow, version, step, input, labels, start_key, state, failure, place)
ON CONFLICT DO NOTHING
RETURNING id, created_at, ready_at

-- started_before --
-- The runs that took these start keys first, in the order of the keys. Inputs are compared as they are
-- kept: the database writes some numbers in another form.
SELECT r.id, r.input = n.input::jsonb AS same
FROM unnest(%(start_keys)s, %(inputs)s) WITH ORDINALITY AS n (start_key, input, place)
JOIN workflows_run r
    ON r.tenant_id = %(tenant)s AND r.workflow = %(workflow)s AND r.start_key = n.start_key
ORDER BY n.place

-- claim --
-- Claim the first of `runs` that may be claimed: a ready one that is due, or a running one whose
-- lease ran out (take-over, which writes the earlier attempt down as lost), and begin an attempt.
-- Of two claims at once, one finds the row locked and gets another or nothing. A worker claims
-- only (workflow, version) pairs that it has; `known` holds their steps with the time that each
-- may take, in seconds. What is paused is left alone; what is being cancelled is not: it ends.
WITH known AS (
    SELECT *
    FROM unnest(%(names)s, %(versions)s, %(steps)s, %(timeouts)s)
        AS k (workflow, version, step, timeout)
),
due AS (
    SELECT r.id, r.workflow, r.version, r.state, r.attempt, r.step, r.visit, r.tries,
        r.lease_owner, r.fence, r.claimed_at
    FROM workflows_run r
    WHERE r.id = ANY(%(runs)s)
      -- A CASE, so that no index is looked at but that of the IDs.
      AND CASE r.state
          WHEN 'ready' THEN r.ready_at <= statement_timestamp()
          WHEN 'running' THEN r.lease_expires_at < statement_timestamp()
          ELSE false
      END
      AND (r.workflow, r.version) IN (SELECT workflow, version FROM known)
      AND (
          r.cancel_asked_at IS NOT NULL
          OR (
              r.paused_at IS NULL
              AND NOT EXISTS (
                  SELECT FROM workflows_pause p
                  WHERE (p.workflow = '' OR p.workflow = r.workflow)
                    AND (p.tenant_id IS NULL OR p.tenant_id = r.tenant_id)
              )
          )
      )
    ORDER BY r.ready_at
    LIMIT 1
    FOR UPDATE OF r SKIP LOCKED
),
lost AS (
    INSERT INTO workflows_attempt
        (id, run_id, step, visit, number, worker, fence, claimed_at, ended_at, state, error)
    SELECT attempt, id, step, visit, tries, lease_owner, fence, claimed_at, statement_timestamp(),
        'lost', 'its worker went quiet, and its lease ended'
    FROM due
    WHERE state = 'running'
)
UPDATE workflows_run r
SET state = 'running', fence = r.fence + 1, lease_owner = %(worker)s, attempt = %(attempt)s,
    hinted_at = NULL, claimed_at = statement_timestamp(), tries = r.tries + 1,
    losses = r.losses + (due.state = 'running')::int,
    timeout_at = statement_timestamp()
        + coalesce(k.timeout, %(missing)s) * interval '1 second',
    lease_expires_at = statement_timestamp()
        + least(%(lease)s, coalesce(k.timeout, %(missing)s)) * interval '1 second'
FROM due LEFT JOIN known k USING (workflow, version, step)
WHERE r.id = due.id
RETURNING r.id, r.workflow, r.version, r.tenant_id, r.parent_id, r.parent_step, r.parent_visit,
    r.step, r.visit, r.input, r.fence, r.created_at, r.tries, r.failures, r.losses,
    timestamptz_send(r.claimed_at) AS claimed_at, r.wake_at, r.cancel_asked_at IS NOT NULL AS cancelling

-- next_due --
-- The runs that have been ready longest, of those that this process has the code for. With `again`
-- only those that nobody was told of for so many seconds.
SELECT d.id
FROM unnest(%(names)s, %(versions)s) AS p (workflow, version)
CROSS JOIN LATERAL (
    SELECT r.id, r.ready_at
    FROM workflows_run r
    WHERE r.state = 'ready' AND r.paused_at IS NULL
      AND r.workflow = p.workflow AND r.version = p.version
      AND r.ready_at <= statement_timestamp()
      AND (%(again)s IS NULL OR r.hinted_at IS NULL
           OR r.hinted_at < statement_timestamp() - %(again)s * interval '1 second')
      -- A CASE, so that this is asked of one row after the other in the order of the index. As a
      -- join the planner takes it to leave nothing, and sorts the whole backlog.
      AND CASE
          WHEN EXISTS (
              SELECT FROM workflows_pause s
              WHERE (s.workflow = '' OR s.workflow = r.workflow)
                AND (s.tenant_id IS NULL OR s.tenant_id = r.tenant_id)
          ) THEN false
          ELSE true
      END
    ORDER BY r.ready_at
    LIMIT %(batch)s
) d
ORDER BY d.ready_at
LIMIT %(batch)s

-- next_due_by_tenant --
-- As `next_due`, while something of a tenant is paused: its backlog, which may be long, is stepped
-- over as a whole. The oldest run of each tenant is looked up, one row each; what is due first of
-- all is among the oldest of those tenants whose oldest runs are due first.
WITH RECURSIVE pairs AS (
    SELECT * FROM unnest(%(names)s, %(versions)s) AS p (workflow, version)
),
head AS (
    SELECT p.workflow, p.version, h.tenant_id, h.ready_at
    FROM pairs p
    CROSS JOIN LATERAL (
        SELECT r.tenant_id, r.ready_at
        FROM workflows_run r
        WHERE r.state = 'ready' AND r.paused_at IS NULL
          AND r.workflow = p.workflow AND r.version = p.version
        ORDER BY r.tenant_id, r.ready_at
        LIMIT 1
    ) h
    UNION ALL
    SELECT h.workflow, h.version, n.tenant_id, n.ready_at
    FROM head h
    CROSS JOIN LATERAL (
        SELECT r.tenant_id, r.ready_at
        FROM workflows_run r
        WHERE r.state = 'ready' AND r.paused_at IS NULL
          AND r.workflow = h.workflow AND r.version = h.version AND r.tenant_id > h.tenant_id
        ORDER BY r.tenant_id, r.ready_at
        LIMIT 1
    ) n
),
first AS (
    SELECT h.workflow, h.version, h.tenant_id
    FROM head h
    WHERE h.ready_at <= statement_timestamp()
      AND NOT EXISTS (
          SELECT FROM workflows_pause s
          WHERE (s.workflow = '' OR s.workflow = h.workflow)
            AND (s.tenant_id IS NULL OR s.tenant_id = h.tenant_id)
      )
    ORDER BY h.ready_at
    LIMIT %(batch)s
)
SELECT d.id
FROM first f
CROSS JOIN LATERAL (
    SELECT r.id, r.ready_at
    FROM workflows_run r
    WHERE r.state = 'ready' AND r.paused_at IS NULL
      AND r.workflow = f.workflow AND r.version = f.version AND r.tenant_id = f.tenant_id
      AND r.ready_at <= statement_timestamp()
      AND (%(again)s IS NULL OR r.hinted_at IS NULL
           OR r.hinted_at < statement_timestamp() - %(again)s * interval '1 second')
    ORDER BY r.ready_at
    LIMIT %(batch)s
) d
ORDER BY d.ready_at
LIMIT %(batch)s

-- go_on --
-- The steady step. Promise P1: output, end of the attempt, the move past the step and the next
-- attempt of the same worker, in one statement. Promise P2: nothing at all happens unless the run
-- is still held by this worker under this fence; then no row comes back. Nor does one when the run
-- was paused or is to be cancelled meanwhile: `stop_here` commits those. The attempt that ends and
-- the one that begins share their moment; the fence is one more.
-- Only columns that no index names are changed here (see models/run.py). The guard names no state:
-- a run has a lease owner exactly while it is running, and the state would draw the planner to
-- the index of all that this worker holds.
WITH moved AS (
    UPDATE workflows_run
    SET step = %(next_step)s, visit = %(next_visit)s, fence = fence + 1,
        attempt = %(next_attempt)s,
        claimed_at = statement_timestamp(), tries = 1, failures = 0, losses = 0, failure = NULL,
        wake_at = NULL,
        timeout_at = statement_timestamp() + %(next_timeout)s,
        lease_expires_at = statement_timestamp() + %(next_lease)s
    WHERE id = %(run)s AND lease_owner = %(worker)s AND fence = %(fence)s
      AND cancel_asked_at IS NULL AND paused_at IS NULL
    RETURNING id
)
INSERT INTO workflows_attempt
    (id, run_id, step, visit, number, worker, fence, claimed_at, ended_at, state, output,
     output_form)
SELECT %(attempt)s, id, %(step)s, %(visit)s, %(number)s, %(worker)s, %(fence)s,
    %(claimed_at)s, statement_timestamp(), 'committed', %(output)s, %(form)s
FROM moved
RETURNING timestamptz_send(ended_at) AS claimed_at

-- stop_here --
-- As `go_on`, for a run that ends with this step or is handed back after it: the last step, a
-- worker that is ending, a pause, a cancellation.
WITH moved AS (
    UPDATE workflows_run
    SET state = CASE WHEN cancel_asked_at IS NULL THEN %(state)s ELSE 'cancelled' END,
        step = %(next_step)s, visit = %(next_visit)s, tries = %(tries)s, failures = 0, losses = 0,
        lease_owner = NULL, lease_expires_at = NULL, hinted_at = NULL,
        failure = CASE
            WHEN cancel_asked_at IS NOT NULL THEN jsonb_build_object(
                'reason', 'cancelled', 'message', 'Cancelled by ' || cancel_asked_by || '.'
            )
        END,
        wake_at = NULL, ready_at = statement_timestamp(),
        finished_at = CASE
            WHEN %(state)s = 'completed' OR cancel_asked_at IS NOT NULL THEN statement_timestamp()
        END,
        purge_at = CASE
            WHEN %(state)s = 'completed' OR cancel_asked_at IS NOT NULL
            THEN statement_timestamp() + %(purge_after)s * interval '1 second'
        END
    WHERE id = %(run)s AND lease_owner = %(worker)s AND fence = %(fence)s
    RETURNING id, state
),
kept AS (
    INSERT INTO workflows_attempt
        (id, run_id, step, visit, number, worker, fence, claimed_at, ended_at, state, output,
         output_form)
    SELECT %(attempt)s, id, %(step)s, %(visit)s, %(number)s, %(worker)s, %(fence)s,
        %(claimed_at)s, statement_timestamp(), 'committed', %(output)s, %(form)s
    FROM moved
)
SELECT state FROM moved

-- release --
-- The attempt ends without an output and the run goes to `state`: to wait, to be held, to be
-- tried again, to fail or to be cancelled. Same guard.
WITH moved AS (
    UPDATE workflows_run
    SET state = %(state)s, lease_owner = NULL, lease_expires_at = NULL,
        failure = %(failure)s, hinted_at = NULL,
        failures = failures + (%(attempt_state)s = 'failed')::int,
        ready_at = statement_timestamp() + %(delay)s * interval '1 second',
        wake_at = CASE WHEN %(state)s = 'waiting' THEN %(wake_at)s END,
        finished_at = CASE
            WHEN %(state)s IN ('failed', 'cancelled') THEN statement_timestamp()
        END,
        purge_at = CASE
            WHEN %(state)s IN ('failed', 'cancelled')
            THEN statement_timestamp() + %(purge_after)s * interval '1 second'
        END
    WHERE id = %(run)s AND lease_owner = %(worker)s AND fence = %(fence)s
    RETURNING id, ready_at
),
kept AS (
    INSERT INTO workflows_attempt
        (id, run_id, step, visit, number, worker, fence, claimed_at, ended_at, state, error)
    SELECT %(attempt)s, id, %(step)s, %(visit)s, %(number)s, %(worker)s, %(fence)s,
        %(claimed_at)s, statement_timestamp(), %(attempt_state)s, %(error)s
    FROM moved
)
SELECT ready_at FROM moved

-- hold_run --
-- Lock the run of a claim that still counts, before anything else is locked (lock order).
SELECT cancel_asked_at IS NOT NULL OR paused_at IS NOT NULL AS stopping
FROM workflows_run
WHERE id = %(run)s AND lease_owner = %(worker)s AND fence = %(fence)s
FOR NO KEY UPDATE

-- supersede --
-- A late commit was refused: keep, for the timeline and as evidence, that and what it brought. If
-- its run is over, the purge looks at it again.
WITH late AS (
    UPDATE workflows_attempt
    SET state = 'superseded', output = %(output)s, output_form = %(form)s
    WHERE id = %(attempt)s AND state = 'lost'
    RETURNING id, run_id
),
over AS (
    UPDATE workflows_run r SET purge_at = statement_timestamp()
    FROM late WHERE r.id = late.run_id AND r.finished_at IS NOT NULL
)
SELECT id FROM late

-- renew_leases --
-- All leases that one worker process works under, in one statement, never past a step's timeout.
-- A row that is locked is at this moment being moved: it is left out, so that it cannot hold up
-- the others.
WITH held AS (
    SELECT id FROM workflows_run
    WHERE lease_owner = %(worker)s AND state = 'running' AND attempt = ANY(%(attempts)s)
      AND timeout_at > statement_timestamp()
    FOR UPDATE SKIP LOCKED
)
UPDATE workflows_run r
SET lease_expires_at = least(statement_timestamp() + %(lease)s * interval '1 second', r.timeout_at)
FROM held WHERE r.id = held.id
RETURNING r.attempt

-- due_runs --
-- The sweep: `runs`, which are due (`next_due`), and expired leases that nobody was told of lately.
-- SKIP LOCKED lets any number of sweeps run at once. Runs that this process has no code for are
-- left to the processes that have it. A few are enough: who is told takes what else is due.
WITH pairs AS (
    SELECT * FROM unnest(%(names)s, %(versions)s) AS p (workflow, version)
),
expired AS (
    SELECT r.id
    FROM workflows_run r JOIN pairs p USING (workflow, version)
    WHERE r.state = 'running' AND r.lease_expires_at < statement_timestamp()
      AND (r.hinted_at IS NULL
           OR r.hinted_at < statement_timestamp() - %(again)s * interval '1 second')
      AND (
          r.cancel_asked_at IS NOT NULL
          OR (
              r.paused_at IS NULL
              AND NOT EXISTS (
                  SELECT FROM workflows_pause s
                  WHERE (s.workflow = '' OR s.workflow = r.workflow)
                    AND (s.tenant_id IS NULL OR s.tenant_id = r.tenant_id)
              )
          )
      )
    ORDER BY r.lease_expires_at
    LIMIT %(batch)s
),
due AS (
    SELECT r.id
    FROM workflows_run r
    WHERE r.id IN (SELECT unnest(%(runs)s) UNION ALL SELECT id FROM expired)
      -- A CASE, as for a claim: an index of states is no way to a run that is known by its ID.
      AND CASE WHEN r.state IN ('ready', 'running') THEN true ELSE false END
      -- Again, of the row as it is once it is locked: another sweep may just have told of it.
      AND (r.hinted_at IS NULL
           OR r.hinted_at < statement_timestamp() - %(again)s * interval '1 second')
    FOR UPDATE OF r SKIP LOCKED
)
UPDATE workflows_run r SET hinted_at = statement_timestamp()
FROM due WHERE r.id = due.id
RETURNING r.id, r.ready_at

-- wake_due --
-- Waiting runs whose time has come. `wake_at` stays: it tells the step what it has waited for.
WITH due AS (
    SELECT id FROM workflows_run
    WHERE state = 'waiting' AND wake_at <= statement_timestamp()
    ORDER BY wake_at
    LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
)
UPDATE workflows_run r SET state = 'ready', ready_at = statement_timestamp(), hinted_at = NULL
FROM due WHERE r.id = due.id
RETURNING r.id

-- unseen_ends --
-- Parents that wait for children of whom one has ended, or is held, and was not seen yet. Only
-- whoever has their code can look.
SELECT DISTINCT p.id
FROM workflows_run c
JOIN workflows_run p ON p.id = c.parent_id
JOIN unnest(%(names)s, %(versions)s) AS k (workflow, version)
    ON k.workflow = p.workflow AND k.version = p.version
WHERE c.parent_id IS NOT NULL AND c.end_seen_at IS NULL
  AND (c.finished_at IS NOT NULL OR c.state = 'held')
  AND p.state = 'waiting' AND p.step = c.parent_step AND p.visit = c.parent_visit
LIMIT %(batch)s

-- see_late_ends --
-- The same that no parent waits for any more, so that they are not looked at for ever.
WITH late AS (
    SELECT c.id
    FROM workflows_run c JOIN workflows_run p ON p.id = c.parent_id
    WHERE c.parent_id IS NOT NULL AND c.end_seen_at IS NULL
      AND (c.finished_at IS NOT NULL OR c.state = 'held')
      AND (p.finished_at IS NOT NULL OR p.step <> c.parent_step OR p.visit <> c.parent_visit)
    LIMIT %(batch)s
    FOR UPDATE OF c SKIP LOCKED
)
UPDATE workflows_run r SET end_seen_at = statement_timestamp()
FROM late WHERE r.id = late.id
RETURNING r.id

-- seen --
-- A worker process is alive; for how many seconds its messages have not reached the broker, and
-- how many seconds ago it swept last (NULL: they do, and never). This is its session, unless a
-- pooler has given it the number of another one.
UPDATE workflows_worker
SET seen_at = statement_timestamp(),
    session = CASE WHEN pg_backend_pid() = %(session)s THEN pg_backend_pid() END,
    server_since = pg_postmaster_start_time(),
    gone_at = NULL,
    broker_away_since = statement_timestamp() - %(broker_away)s * interval '1 second',
    swept_at = coalesce(statement_timestamp() - %(swept)s * interval '1 second', swept_at)
WHERE id = %(worker)s
RETURNING id

-- gone_workers --
-- Workers that were seen within a lease and whose session with this server has ended since. A restart
-- ends all of them and says nothing about a worker: then it is another server.
SELECT w.id, w.session
FROM workflows_worker w
WHERE w.seen_at > statement_timestamp() - %(lease)s * interval '1 second'
  AND w.server_since = pg_postmaster_start_time() AND w.session IS NOT NULL
  AND NOT EXISTS (SELECT FROM pg_stat_get_activity(NULL) s WHERE s.pid = w.session)

-- end_leases --
-- Workers that are gone are marked as that, and their leases run out now. One that is alive after
-- all renews them, and takes its mark away.
WITH gone AS (
    SELECT w.id FROM workflows_worker w
    WHERE w.id = ANY(%(workers)s) AND w.gone_at IS NULL
      AND NOT EXISTS (SELECT FROM pg_stat_get_activity(NULL) s WHERE s.pid = w.session)
    FOR UPDATE SKIP LOCKED
),
marked AS (
    UPDATE workflows_worker w SET gone_at = statement_timestamp()
    FROM gone WHERE w.id = gone.id
),
held AS (
    SELECT id FROM workflows_run
    WHERE lease_owner = ANY(%(workers)s) AND state = 'running'
      AND lease_expires_at > statement_timestamp()
    LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
)
UPDATE workflows_run r SET lease_expires_at = statement_timestamp(), hinted_at = NULL
FROM held WHERE r.id = held.id
RETURNING r.id

-- be_patient --
-- Until the transaction ends a statement of it waits so long for a lock, and then fails.
SELECT set_config('lock_timeout', %(patience)s, true)

-- lock_matching --
-- Until the transaction ends nobody else stores an event, opens a wait or ends one by its deadline
-- for these tenants, types and correlations. A statement of its own: the next one sees what the
-- holder before has committed. The keys come sorted.
SELECT pg_advisory_xact_lock(key) FROM unnest(%(keys)s) AS key

-- open_waits --
-- The waits that could take an event, locked with their runs, in one order for everybody. What is
-- being cancelled takes nothing more. The deadline is the last moment that counts; whether it has
-- been carried out yet does not. An event that arrives now is received at this very `moment`.
SELECT w.id, w.run_id, w.shared, statement_timestamp() AS moment
FROM workflows_wait w JOIN workflows_run r ON r.id = w.run_id
WHERE w.state = 'waiting' AND w.tenant_id = %(tenant)s AND w.correlation = %(correlation)s
  AND %(type)s = ANY(w.event_types)
  AND (w.deadline IS NULL OR w.deadline >= coalesce(%(received_at)s, statement_timestamp()))
  AND r.cancel_asked_at IS NULL
ORDER BY w.run_id
FOR NO KEY UPDATE OF r, w

-- store_event --
-- Keep an event, count it if its source has sent its ID before, and give it to `waits`, which are
-- locked. A wait that has all that it needs is resolved, and its run is ready: one statement, so
-- no event is ever taken by a wait whose run does not go on.
-- `late` is for people: the latest wait that it would have fitted is over.
WITH before AS (
    SELECT w.step, w.state, w.deadline
    FROM workflows_wait w
    WHERE %(state)s = 'stored'
      AND w.tenant_id = %(tenant)s AND w.correlation = %(correlation)s
      AND %(type)s = ANY(w.event_types)
    ORDER BY w.id DESC
    LIMIT 1
),
stored AS (
    INSERT INTO workflows_event AS e
        (id, source_id, tenant_id, event_id, type, correlation, received_at, content_type,
         encoding, body, state, problem, ambiguous_at, dismissed_by, dismissed_reason, duplicates)
    SELECT %(event)s, %(source)s, %(tenant)s, %(event_id)s, %(type)s, %(correlation)s,
        coalesce(%(received_at)s, statement_timestamp()), %(content_type)s, %(encoding)s,
        %(body)s,
        CASE WHEN b.step IS NULL OR %(ambiguous)s THEN %(state)s ELSE 'late' END,
        CASE
            WHEN b.step IS NULL OR %(ambiguous)s THEN %(problem)s
            WHEN b.state = 'resolved'
            THEN 'The wait at step ' || b.step || ' had what it needed already.'
            WHEN b.state = 'expired' OR b.deadline < statement_timestamp()
            THEN 'It came after the deadline of the wait at step ' || b.step || '.'
            ELSE 'The wait at step ' || b.step || ' was cancelled.'
        END,
        CASE WHEN %(ambiguous)s THEN statement_timestamp() END, '', '', 0
    FROM (SELECT) one LEFT JOIN before b ON true
    ON CONFLICT (source_id, event_id)
    DO UPDATE SET duplicates = e.duplicates + 1, last_duplicate_at = statement_timestamp()
    RETURNING e.id, e.state
),
given AS (
    INSERT INTO workflows_match (id, event_id, wait_id, at, by, reason)
    SELECT n.id, s.id, n.wait, statement_timestamp(), '', ''
    FROM stored s, unnest(%(matches)s, %(waits)s) AS n (id, wait)
    WHERE s.id = %(event)s
    RETURNING wait_id
),
resolved AS (
    UPDATE workflows_wait w
    SET state = 'resolved', resolved_at = statement_timestamp()
    FROM given g
    WHERE w.id = g.wait_id AND w.state = 'waiting'
      AND w.needed <= 1 + (SELECT count(*) FROM workflows_match m WHERE m.wait_id = w.id)
    RETURNING w.run_id
),
readied AS (
    UPDATE workflows_run r
    SET state = 'ready', ready_at = statement_timestamp(), hinted_at = NULL, wake_at = NULL
    FROM resolved
    WHERE r.id = resolved.run_id AND r.state = 'waiting'
    RETURNING r.id
)
SELECT s.id, s.state, r.id AS run FROM stored s LEFT JOIN readied r ON true

-- open_wait --
-- A run begins to wait, in the transaction in which it gives back its worker. Its deadline counts
-- from now on, and stays what it is.
INSERT INTO workflows_wait
    (id, run_id, step, visit, tenant_id, event_types, correlation, deadline, needed, shared,
     started_at, state)
VALUES (
    %(wait)s, %(run)s, %(step)s, %(visit)s, %(tenant)s, %(types)s, %(correlation)s,
    coalesce(%(deadline)s, statement_timestamp() + %(within)s * interval '1 second'),
    %(needed)s, %(shared)s, statement_timestamp(), 'waiting'
)
RETURNING id

-- latest_wait --
-- The latest wait of a step and visit, with each event that it got, the oldest first; one row while
-- it has none.
SELECT w.id AS wait, w.state AS wait_state, to_json(w.event_types) AS wait_types,
    w.correlation AS wait_correlation, e.id, e.event_id, e.type, e.correlation, e.received_at,
    e.encoding, e.body, s.slug, s.scheme, s.max_bytes
FROM (
    SELECT id, state, event_types, correlation
    FROM workflows_wait
    WHERE run_id = %(run)s AND step = %(step)s AND visit = %(visit)s
    ORDER BY id DESC
    LIMIT 1
) w
LEFT JOIN workflows_match m ON m.wait_id = w.id
LEFT JOIN workflows_event e ON e.id = m.event_id
LEFT JOIN workflows_eventsource s ON s.id = e.source_id
ORDER BY e.received_at, e.id

-- take_events --
-- Let an open wait, whose run and key are locked, take what is stored for it, the oldest first: what
-- came in time. With all that it needs it is resolved; else, when its deadline is past, over. What
-- is ambiguous is a person's to give.
WITH w AS (
    SELECT id, tenant_id, correlation, event_types, deadline, needed,
        (SELECT count(*) FROM workflows_match m WHERE m.wait_id = workflows_wait.id) AS got
    FROM workflows_wait
    WHERE id = %(wait)s AND state = 'waiting'
    FOR UPDATE
),
found AS (
    SELECT e.id, e.received_at
    FROM w JOIN workflows_event e ON e.tenant_id = w.tenant_id AND e.correlation = w.correlation
        AND e.type = ANY(w.event_types)
    WHERE e.state IN ('stored', 'late') AND e.dismissed_at IS NULL AND e.ambiguous_at IS NULL
      AND (w.deadline IS NULL OR e.received_at <= w.deadline)
    ORDER BY e.received_at, e.id
    LIMIT (SELECT greatest(needed - got, 0) FROM w)
    FOR UPDATE OF e
),
taken AS (
    UPDATE workflows_event e SET state = 'matched', problem = ''
    FROM found f WHERE e.id = f.id
    RETURNING e.id
),
given AS (
    INSERT INTO workflows_match (id, event_id, wait_id, at, by, reason)
    SELECT n.id, t.id, %(wait)s, statement_timestamp(), '', ''
    FROM (SELECT id, row_number() OVER (ORDER BY id) AS place FROM taken) t
    JOIN unnest(%(matches)s) WITH ORDINALITY AS n (id, place) USING (place)
    RETURNING id
),
now AS (
    SELECT w.id, w.got + (SELECT count(*) FROM given) AS got,
        CASE
            WHEN w.got + (SELECT count(*) FROM given) >= w.needed THEN 'resolved'
            WHEN w.deadline < statement_timestamp() THEN 'expired'
            ELSE 'waiting'
        END AS state
    FROM w
)
UPDATE workflows_wait w
SET state = now.state,
    resolved_at = CASE WHEN now.state <> 'waiting' THEN statement_timestamp() END
FROM now WHERE w.id = now.id
RETURNING w.state, w.deadline, now.got

-- missed_events --
-- The second net: events that an open wait could take, for which `receive` and `open_wait` look
-- when they come. The open waits are walked by their runs, some at a time.
WITH part AS (
    SELECT run_id, tenant_id, correlation, event_types, deadline
    FROM workflows_wait
    WHERE state = 'waiting' AND run_id > %(run)s
    ORDER BY run_id
    LIMIT %(batch)s
)
SELECT part.run_id AS run, e.id
FROM part LEFT JOIN LATERAL (
    SELECT e.id
    FROM workflows_event e
    WHERE e.tenant_id = part.tenant_id AND e.correlation = part.correlation
      AND e.type = ANY(part.event_types)
      AND e.state IN ('stored', 'late') AND e.dismissed_at IS NULL AND e.ambiguous_at IS NULL
      AND (part.deadline IS NULL OR e.received_at <= part.deadline)
    ORDER BY e.received_at, e.id
    LIMIT 1
) e ON true

-- lock_waits --
-- Those of `waits` that are open, locked with their runs.
SELECT w.id
FROM workflows_wait w JOIN workflows_run r ON r.id = w.run_id
WHERE w.id = ANY(%(waits)s) AND w.state = 'waiting' AND r.cancel_asked_at IS NULL
ORDER BY w.run_id
FOR NO KEY UPDATE OF r, w

-- give_event --
-- As `store_event` gives: an event that is stored, to waits that are locked. No row comes back when
-- another has taken it, or it was dismissed.
WITH taken AS (
    UPDATE workflows_event
    SET state = 'matched', problem = '', ambiguous_at = NULL
    WHERE id = %(event)s AND state <> 'matched' AND dismissed_at IS NULL
    RETURNING id
),
given AS (
    INSERT INTO workflows_match (id, event_id, wait_id, at, by, reason)
    SELECT n.id, t.id, n.wait, statement_timestamp(), %(by)s, %(reason)s
    FROM taken t, unnest(%(matches)s, %(waits)s) AS n (id, wait)
    RETURNING wait_id
),
resolved AS (
    UPDATE workflows_wait w
    SET state = 'resolved', resolved_at = statement_timestamp()
    FROM given g
    WHERE w.id = g.wait_id AND w.state = 'waiting'
      AND w.needed <= 1 + (SELECT count(*) FROM workflows_match m WHERE m.wait_id = w.id)
    RETURNING w.run_id
),
readied AS (
    UPDATE workflows_run r
    SET state = 'ready', ready_at = statement_timestamp(), hinted_at = NULL, wake_at = NULL
    FROM resolved
    WHERE r.id = resolved.run_id AND r.state = 'waiting'
    RETURNING r.id
)
SELECT t.id, r.id AS run FROM taken t LEFT JOIN readied r ON true
