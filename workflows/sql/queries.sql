-- The hot statements of the execution record. Each is one round trip and one commit.
-- Lock order everywhere: run, then attempt. The clock is the database's,
-- at the start of the statement, as in Django's own Now().

-- claim --
-- Claim one run: a ready one that is due, or a running one whose lease ran out (take-over, which
-- marks the earlier attempt lost), and open its attempt. Of two claims at once, one finds the row
-- locked and gets nothing. A worker claims only (workflow, version) pairs that it has; `known`
-- holds their steps with the time that each may take, in seconds.
-- The new attempt's number and the tries that this step has used up come from the attempts of the
-- same step and visit; one that still says running here is the one being marked lost.
WITH known AS (
    SELECT *
    FROM unnest(%(names)s::text[], %(versions)s::int[], %(steps)s::text[], %(timeouts)s::float8[])
        AS k (workflow, version, step, timeout)
),
due AS (
    SELECT r.id
    FROM workflows_run r
    WHERE r.id = %(run)s
      AND (
          (r.state = 'ready' AND r.ready_at <= statement_timestamp())
          OR (r.state = 'running' AND r.lease_expires_at < statement_timestamp())
      )
      AND (r.workflow, r.version) IN (SELECT workflow, version FROM known)
    FOR UPDATE SKIP LOCKED
),
lost AS (
    UPDATE workflows_attempt a
    SET state = 'lost', ended_at = statement_timestamp(),
        error = 'its worker went quiet and the lease ran out'
    FROM due
    WHERE a.run_id = due.id AND a.state = 'running'
    RETURNING a.id
),
claimed AS (
    UPDATE workflows_run r
    SET state = 'running', fence = r.fence + 1, lease_owner = %(worker)s, hinted_at = NULL,
        lease_expires_at = statement_timestamp() + %(lease)s * interval '1 second'
    FROM due
    -- The count orders this after the attempt is marked lost: one attempt runs at a time.
    WHERE r.id = due.id AND (SELECT count(*) FROM lost) >= 0
    RETURNING r.*
),
counted AS (
    SELECT
        count(a.id) AS tries,
        count(*) FILTER (
            WHERE a.fence > c.counts_from_fence AND a.state = 'failed'
        ) AS failures,
        count(*) FILTER (
            WHERE a.fence > c.counts_from_fence AND a.state IN ('lost', 'superseded', 'running')
        ) AS lost
    FROM claimed c
    LEFT JOIN workflows_attempt a ON a.run_id = c.id AND a.step = c.step AND a.visit = c.visit
    GROUP BY c.id
),
opened AS (
    INSERT INTO workflows_attempt
        (id, run_id, step, visit, number, worker, fence, claimed_at, timeout_at, state, error)
    SELECT %(attempt)s, c.id, c.step, c.visit, counted.tries + 1, %(worker)s, c.fence,
        statement_timestamp(),
        statement_timestamp() + coalesce(k.timeout, %(missing)s) * interval '1 second',
        'running', ''
    FROM counted, claimed c
    LEFT JOIN known k ON (k.workflow, k.version, k.step) = (c.workflow, c.version, c.step)
)
SELECT
    c.id, c.workflow, c.version, c.tenant_id, c.step, c.visit, c.input, c.fence, c.created_at,
    statement_timestamp() AS claimed_at, counted.tries, counted.failures, counted.lost
FROM claimed c, counted

-- commit_step --
-- Promise P1: output, end of the attempt, and the move past the step, in one statement; and, when
-- the next step follows at once, the next attempt of the same worker. Promise P2: nothing at all
-- happens unless the run is still held by this worker under this fence; then no row comes back.
WITH moved AS (
    UPDATE workflows_run
    SET state = %(state)s, step = %(next_step)s, visit = %(next_visit)s, failure = NULL,
        fence = fence + %(opens)s,
        lease_owner = CASE WHEN %(opens)s = 1 THEN lease_owner END,
        lease_expires_at =
            CASE WHEN %(opens)s = 1 THEN statement_timestamp() + %(lease)s * interval '1 second' END,
        result = %(result)s, ready_at = statement_timestamp(), hinted_at = NULL,
        finished_at = CASE WHEN %(state)s = 'completed' THEN statement_timestamp() END
    WHERE id = %(run)s AND state = 'running' AND lease_owner = %(worker)s AND fence = %(fence)s
    RETURNING id, fence
),
closed AS (
    UPDATE workflows_attempt a
    SET state = 'committed', ended_at = statement_timestamp()
    FROM moved
    WHERE a.id = %(attempt)s
    RETURNING a.id
),
stored AS (
    INSERT INTO workflows_stepoutput (id, run_id, step, visit, attempt_id, value, created_at)
    SELECT %(output)s, moved.id, %(step)s, %(visit)s, closed.id, %(value)s, statement_timestamp()
    FROM moved, closed
),
opened AS (
    INSERT INTO workflows_attempt
        (id, run_id, step, visit, number, worker, fence, claimed_at, timeout_at, state, error)
    SELECT %(next_attempt)s, moved.id, %(next_step)s, %(next_visit)s, 1, %(worker)s, moved.fence,
        statement_timestamp(), statement_timestamp() + %(next_timeout)s * interval '1 second', 'running', ''
    -- The closed row orders this after the end of the earlier attempt: one runs at a time.
    FROM moved, closed
    WHERE %(opens)s = 1
)
SELECT fence FROM moved

-- release --
-- The attempt ends without an output and the run goes to `state`: to wait, to be held, to be
-- tried again, or to fail. Same guard as commit_step.
WITH moved AS (
    UPDATE workflows_run
    SET state = %(state)s, lease_owner = NULL, lease_expires_at = NULL, failure = %(failure)s,
        ready_at = statement_timestamp() + %(delay)s * interval '1 second', hinted_at = NULL,
        finished_at = CASE WHEN %(state)s IN ('failed', 'cancelled') THEN statement_timestamp() END
    WHERE id = %(run)s AND state = 'running' AND lease_owner = %(worker)s AND fence = %(fence)s
    RETURNING id, ready_at
),
closed AS (
    UPDATE workflows_attempt a
    SET state = %(attempt_state)s, ended_at = statement_timestamp(), error = %(error)s
    FROM moved
    WHERE a.id = %(attempt)s
)
SELECT ready_at FROM moved

-- hold_run --
-- Lock the run of a claim that still counts, before anything else is locked (lock order).
SELECT id FROM workflows_run
WHERE id = %(run)s AND state = 'running' AND lease_owner = %(worker)s AND fence = %(fence)s
FOR UPDATE

-- supersede --
-- A late commit was refused: keep, for the timeline, that it was tried.
UPDATE workflows_attempt
SET state = 'superseded'
WHERE id = %(attempt)s AND state = 'lost'
RETURNING id

-- renew_leases --
-- All leases that one worker process works under, in one statement, never past a step's timeout.
UPDATE workflows_run r
SET lease_expires_at = least(statement_timestamp() + %(lease)s * interval '1 second', a.timeout_at)
FROM workflows_attempt a
WHERE r.lease_owner = %(worker)s AND r.state = 'running'
  AND a.run_id = r.id AND a.state = 'running' AND a.timeout_at > statement_timestamp()
  AND a.id = ANY(%(attempts)s)
RETURNING r.id

-- due_runs --
-- The sweep: ready runs and expired leases that nobody was told of lately. SKIP LOCKED lets any
-- number of sweeps run at once; `again` keeps a backlog from being told of each second. Runs that
-- this process has no code for are left to the processes that have it.
WITH waiting AS (
    SELECT id FROM workflows_run
    WHERE state = 'ready' AND ready_at <= statement_timestamp()
      AND (workflow, version) IN (SELECT * FROM unnest(%(names)s::text[], %(versions)s::int[]))
      AND (hinted_at IS NULL
           OR hinted_at < statement_timestamp() - %(again)s * interval '1 second')
    ORDER BY ready_at LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
),
expired AS (
    SELECT id FROM workflows_run
    WHERE state = 'running' AND lease_expires_at < statement_timestamp()
      AND (workflow, version) IN (SELECT * FROM unnest(%(names)s::text[], %(versions)s::int[]))
      AND (hinted_at IS NULL
           OR hinted_at < statement_timestamp() - %(again)s * interval '1 second')
    ORDER BY lease_expires_at LIMIT %(batch)s
    FOR UPDATE SKIP LOCKED
),
due AS (SELECT id FROM waiting UNION ALL SELECT id FROM expired)
UPDATE workflows_run r SET hinted_at = statement_timestamp()
FROM due WHERE r.id = due.id
RETURNING r.id

-- seen --
UPDATE workflows_worker SET seen_at = statement_timestamp() WHERE id = %(worker)s RETURNING id
