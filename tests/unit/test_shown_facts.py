"""The facts behind why a run is not moving, as its page shows them."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from workflows.selectors.run_why import shown_facts

AT = datetime(2026, 3, 10, 23, 12, 40, tzinfo=UTC)


def test_a_time_within_a_fact_is_in_the_reader_s_zone() -> None:
    facts = {"taken": [{"type": "paid", "at": AT}]}
    (taken,) = shown_facts(facts, ZoneInfo("Europe/Berlin"))
    assert taken.text == "paid: 11 Mar 2026, 00:12:40 CET"
    (taken,) = shown_facts(facts, UTC)
    assert taken.text == "paid: 10 Mar 2026, 23:12:40 UTC"
