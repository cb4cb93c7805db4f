"""A purge beside people who act on the same events and on their holds."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from django.db import connection, transaction

from reconciliation.models import Hold
from reconciliation.services.audit import add_entry
from tests.events import delivered, driven, source, waiting
from tests.racing import beside, wait_until_blocked
from tests.waiting import LIMIT_SECONDS
from workflows.models import Event
from workflows.services.clock import database_now
from workflows.services.event_items import dismiss, restore
from workflows.services.event_purge import over_and_done, purge_batch

pytestmark = pytest.mark.usefixtures("committed_db")

LOCK = 4_711


def test_what_was_given_to_a_wait_while_it_was_looked_at_is_not_purged() -> None:
    made = source()
    made.retain = timedelta(0)
    made.save()
    event = delivered().event
    dismiss(event, by="ada", reason="Not ours.")
    run = waiting()
    # As if it were found a day later; its reading stops here until the lock is free.
    later = database_now() + timedelta(days=1)
    found = over_and_done(made, later).extra(
        where=["(SELECT pg_advisory_xact_lock_shared(%s)) IS NOT NULL"], params=[LOCK]
    )
    with beside() as do:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
            purge = do(partial(purge_batch, found, later))
            wait_until_blocked(purge)
            assert restore(event, by="ada", reason="It was.").changed
        assert purge.result(timeout=LIMIT_SECONDS).events == 0
    assert Event.objects.get(pk=event).body is not None
    assert driven(run).state == "completed"


def test_a_purge_and_whoever_acts_on_a_hold_of_its_events_do_not_lock_each_other_out() -> None:
    """Every hold before the audit record, for both."""
    for place in range(2):
        for _ in range(2):
            waiting(correlation=f"c{place}")
        delivered(f"c{place}")
    events = Event.objects.filter(ambiguous_at__isnull=False)
    with beside() as do:
        with transaction.atomic():
            last = Hold.objects.select_for_update().order_by("-event_id")[0]
            purge = do(partial(purge_batch, events, database_now()))
            wait_until_blocked(purge)
            add_entry("user:1 ada", "claimed", last.subject, {})
        assert purge.result(timeout=LIMIT_SECONDS).dismissed == 2
    assert set(Hold.objects.values_list("state", flat=True)) == {"closed"}
