"""Named points at which this very process dies by SIGKILL; off unless a setting names them.

`ROMULUS_FAILPOINTS=before_checkpoint` dies at the first passage, `before_checkpoint@create_refund`
only for that step, `before_checkpoint*3` at the third passage. A name that does not exist is
refused at start, so that a kill test cannot pass because of a misspelling.

There is one before and one after every commit of the execution record and of the ledger.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Sequence

from django.conf import settings

KNOWN = frozenset(
    {
        # A run, and a worker's way through it.
        "before_start",
        "after_start",
        "before_start_many",
        "after_start_many",
        "before_claim",
        "after_claim",
        "before_object",
        "after_object",  # a large output is in the storage, nothing refers to it
        "before_checkpoint",
        "after_checkpoint",  # in an atomic step its transaction is still open
        "after_atomic",
        "before_release",
        "after_release",
        "before_supersede",
        "after_supersede",
        # A worker process, and the duties of its sweep.
        "before_enlist",
        "after_enlist",
        "before_renew",
        "after_renew",
        "after_seen",
        "before_gone",  # the leases of a worker that is gone end
        "after_gone",
        "before_hint",
        "after_hint",
        "before_wake",
        "after_wake",
        "before_look",  # at a parent whose children have ended
        "after_look",
        "before_late_ends",
        "after_late_ends",
        "before_end",  # of a run that somebody has cancelled
        "after_end",
        "before_purge",
        "after_purge",  # the rows say purged, the objects are there
        "before_purged",
        "after_purged",
        # Waits and events.
        "before_event",
        "event_stored",  # and given, in a transaction that is still open
        "after_event",  # it is committed, and nobody was told of its run
        "before_decide",  # what comes of a wait
        "wait_opened",  # it was not looked for events yet, and nothing is committed
        "after_decide",
        "before_match",  # of an event that is stored
        "after_match",
        "before_attach",  # and what else people do to events
        "after_attach",
        "before_dismiss",
        "after_dismiss",
        "before_restore",
        "after_restore",
        "before_replay",
        "after_replay",
        "before_sent",  # an event by hand
        "after_sent",
        "before_purge_events",
        "after_purge_events",
        # What people do.
        "before_cancel",
        "after_cancel",
        "before_pause",  # or resume
        "after_pause",
        "before_pause_all",
        "after_pause_all",
        "before_resume_all",
        "after_resume_all",
        "before_migration",  # to a later version of its workflow
        "after_migration",
        "before_decision",
        "after_decision",
        "before_approval",  # or another answer to a proposal
        "after_approval",
        "before_ask_again",
        "after_ask_again",
        "before_served",  # an answer to an executor elsewhere
        "after_served",
        "before_policy",  # and what else is set up of the boundary
        "after_policy",
        "before_switch",
        "after_switch",
        "before_ask",
        "after_ask",
        "before_chain_check",
        "after_chain_check",
        "before_assign",
        "after_assign",
        "before_snooze",
        "after_snooze",
        "before_reminder",
        "after_reminder",
        "before_remind",
        "after_remind",
        "before_note",
        "after_note",
        "before_bulk",
        "after_bulk",  # the set is stored, and nobody was told of it
        "before_bulk_item",
        "after_bulk_item",  # its effect and what is said of it are committed
        "before_bulk_end",
        "after_bulk_end",
        # An operation.
        "before_open",
        "after_open",
        "before_dispatch",
        "after_dispatch",  # the claim to send is committed, no byte has left
        "after_answer",  # the provider has answered, nothing is recorded
        "before_settle",
        "after_settle",
        "before_give_up",  # a send of a worker that went quiet
        "after_give_up",
        "before_take",  # a reconciliation that is due
        "after_take",
        "before_found",  # what a look-up found is kept
        "after_found",
        "before_checked",
        "after_checked",
        "before_follow",
        "after_follow",
        # What people are told.
        "before_escalate",  # of holds that nobody decides
        "after_escalate",
        "before_void",  # what is proposed can be confirmed no more
        "after_void",
        "before_digest",
        "after_digest",
        "before_addressed",
        "after_addressed",
        "before_composed",
        "after_composed",
        "message_taken",  # nothing has left
        "message_sent",  # it has left, and nothing is recorded
        "before_recorded",
        "after_recorded",
        "before_test",
        "after_test",
        "before_duplicate",  # two effects of one operation are put on record
        "after_duplicate",
        "before_contract_review",  # the stop of repeats to a provider ends
        "after_contract_review",
    }
)

_passages: Counter[str] = Counter()
_counting = threading.Lock()


def failpoint(name: str, where: str = "") -> None:
    """Die here if the settings say so. `where` is the step's name."""
    if name not in KNOWN:
        raise ValueError(f"unknown failpoint {name!r}")
    armed = settings.ROMULUS_FAILPOINTS
    if armed and is_time(armed, (name, f"{name}@{where}")):
        os.kill(os.getpid(), signal.SIGKILL)


def is_time(armed: Sequence[str], passed: tuple[str, str]) -> bool:
    """Count this passage for the entries that name it; whether it is the one to die at."""
    with _counting:
        for entry in armed:
            point, _, number = entry.partition("*")
            if point in passed:
                _passages[entry] += 1
                if _passages[entry] == int(number or 1):
                    return True
    return False


def check_names(armed: Sequence[str]) -> None:
    """Raise `ValueError` for a failpoint that does not exist, or a passage that is no number."""
    unknown = sorted({entry.partition("*")[0].split("@")[0] for entry in armed} - KNOWN)
    if unknown:
        raise ValueError(f"ROMULUS_FAILPOINTS names {unknown}; known: {sorted(KNOWN)}")
    for entry in armed:
        _, star, number = entry.partition("*")
        if star and not (number.isdecimal() and int(number)):
            raise ValueError(f"ROMULUS_FAILPOINTS: {entry!r}: write *N for the N-th passage")
