"""Every check of a torture finds the breach that it is for, and takes the excuses that count."""

from __future__ import annotations

import dataclasses
from uuid import UUID

from romulus_site.torture.checks import CHECKS, examine
from romulus_site.torture.record import Record
from romulus_site.torture.strikes import Strike, strikes_of
from tests.integration.torture import (  # noqa: F401 (they mark what they break)
    test_ends,
    test_events,
    test_ledger,
    test_steps,
    test_traces,
)
from tests.integration.torture.breaking import (
    PAID,
    SECOND,
    TOLD,
    WALKED,
    attempts,
    checks_broken,
    run_no,
    sends,
)


def test_where_nothing_is_broken_nothing_is_found(record: Record) -> None:
    assert examine(record) == []


def test_every_check_is_shown_something_broken() -> None:
    assert checks_broken() == {check.name for check in CHECKS}


# --- what excuses -----------------------------------------------------------------------------


def test_a_loss_is_excused_by_a_blow_on_its_worker(record: Record) -> None:
    lost = attempts(record, WALKED)[3]
    lost.state, lost.output_form = "lost", None
    strike = Strike("worker", "killed", lost.claimed_at, None, record.workers[lost.worker])
    record.performance.strikes = strikes_of([strike], 3.0)
    assert "losses" not in {breach.check for breach in examine(record)}


def test_an_unknown_outcome_is_excused_by_a_blow_on_the_destination(record: Record) -> None:
    sent = sends(record, TOLD)[0]
    sent.state = "unknown"
    strike = Strike("destination", "killed", sent.started_at, sent.started_at + SECOND)
    record.performance.strikes = strikes_of([strike], 3.0)
    assert "unknown" not in {breach.check for breach in examine(record)}


def test_a_request_of_which_the_head_alone_arrived_is_no_other_request(record: Record) -> None:
    entry = next(e for e in record.journal if e.attempt == str(sends(record, PAID)[1].pk))
    cut = dataclasses.replace(entry, body=b"", done="nothing", status=400, effect=None)
    record.journal = [*record.journal, cut]
    assert "one key" not in {breach.check for breach in examine(record)}


def test_a_run_is_named_with_its_number_and_its_id(record: Record) -> None:
    run = run_no(record, WALKED)
    assert record.name(run) == f"run {run.pk} (torture.walk, no. 1)"
    assert "does not exist" in record.name(UUID(int=0))
