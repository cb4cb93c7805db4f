"""Where processes are let die: each failpoint that they pass, and in how many passages of it.

A point that is passed all the time is not died at in its first passage alone: a process that dies
before its first claim has nothing in hand.
"""

from __future__ import annotations

# Failpoints of a worker process, with the latest passage that is died at.
OF_WORKER = {
    "before_enlist": 1,
    "after_enlist": 1,
    "before_claim": 20,
    "after_claim": 10,
    "before_object": 2,
    "after_object": 2,
    "before_checkpoint": 30,
    "after_checkpoint": 30,
    "after_atomic": 4,
    "before_release": 10,
    "after_release": 10,
    "before_supersede": 1,
    "after_supersede": 1,
    "before_renew": 4,
    "after_renew": 4,
    "after_seen": 4,
    "before_hint": 20,
    "after_hint": 20,
    "before_wake": 20,
    "after_wake": 20,
    "before_look": 5,
    "after_look": 5,
    "before_late_ends": 10,
    "after_late_ends": 10,
    "before_end": 1,
    "after_end": 1,
    "before_open": 3,
    "after_open": 3,
    "before_dispatch": 3,
    "after_dispatch": 3,
    "after_answer": 3,
    "before_settle": 3,
    "after_settle": 3,
    "before_give_up": 1,
    "after_give_up": 1,
    "before_take": 2,
    "after_take": 1,
    "before_found": 2,
    "after_found": 2,
    "before_checked": 2,
    "after_checked": 2,
    "before_follow": 2,
    "after_follow": 2,
    "before_decide": 5,
    "wait_opened": 3,
    "after_decide": 5,
}

# Those of the process that starts runs, takes events, cancels, pauses, decides and purges. It dies
# at the first.
OF_CLERK = {
    "before_start": 1,
    "after_start": 1,
    "before_start_many": 1,
    "after_start_many": 1,
    "before_cancel": 1,
    "after_cancel": 1,
    "before_pause": 1,
    "after_pause": 1,
    "before_pause_all": 1,
    "after_pause_all": 1,
    "before_resume_all": 1,
    "after_resume_all": 1,
    "before_switch": 1,
    "after_switch": 1,
    "before_decision": 1,
    "after_decision": 1,
    "before_ask": 1,
    "after_ask": 1,
    "before_purge": 1,
    "after_purge": 1,
    "before_purged": 1,
    "after_purged": 1,
    "before_event": 1,
    "event_stored": 1,
    "after_event": 1,
}

# Not passed here: the tortured workflows have one version; nothing is twice at a destination; no
# event is missed, so that it has to be matched again, and nobody does anything to one by hand; none
# is old enough to be purged; and none of their writes is proposed to anybody.
ELSEWHERE = frozenset(
    {
        "before_migration",
        "after_migration",
        "before_duplicate",
        "after_duplicate",
        "before_approval",
        "after_approval",
        "before_ask_again",
        "after_ask_again",
        "before_served",
        "after_served",
        "before_policy",
        "after_policy",
        "before_match",
        "after_match",
        "before_attach",
        "after_attach",
        "before_dismiss",
        "after_dismiss",
        "before_restore",
        "after_restore",
        "before_replay",
        "after_replay",
        "before_sent",
        "after_sent",
        "before_purge_events",
        "after_purge_events",
    }
)
