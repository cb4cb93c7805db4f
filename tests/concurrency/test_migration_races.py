"""A migration beside workers and other migrations: the run moves once, and nobody loses it."""

from __future__ import annotations

from functools import partial

import psycopg
import pytest

from reconciliation.models import AuditEntry
from tests.claiming import claimed, commit, worker
from tests.factories import tenant
from tests.racing import at_once, beside, wait_until_blocked
from tests.versions import process_with, step_versions
from tests.waiting import LIMIT_SECONDS
from workflows.core.outcomes import Outcome
from workflows.core.standing import Moves, Reason, Stays
from workflows.models import Run
from workflows.services.claims import Claim, claim_run
from workflows.services.migrations import migrate_run
from workflows.services.runs import start

pytestmark = pytest.mark.usefixtures("committed_db")

BY = "command:ada"


def test_of_a_claim_and_a_migration_one_comes_first_and_the_other_sees_it() -> None:
    first, second = step_versions()
    with process_with(first, second):
        for _ in range(10):
            run = start(first.name, {}, tenant=tenant(), version=1)
            claim, outcome = at_once(
                partial(claim_run, run.pk, worker()), partial(migrate_run, run.pk, 2, by=BY)
            )
            run.refresh_from_db()
            assert isinstance(outcome, Outcome), outcome
            if isinstance(outcome.answer, Stays):
                assert outcome.answer.reason is Reason.AT_WORK
                assert run.version == 1
            else:
                assert run.version == 2
            # A claim that met the lock has got nothing; any other is of the version that counts.
            assert claim is None or claim.workflow.version == run.version


def test_a_run_that_is_claimed_before_the_lock_is_left_to_its_worker(committed_db: str) -> None:
    first, second = step_versions()
    with process_with(first, second), beside() as apart, psycopg.connect(committed_db) as other:
        run = start(first.name, {}, tenant=tenant(), version=1)
        other.execute("SELECT 1 FROM workflows_run WHERE id = %s FOR UPDATE", [run.pk])
        migration = apart(partial(migrate_run, run.pk, 2, by=BY))
        wait_until_blocked(migration)
        other.execute(
            "UPDATE workflows_run SET state = 'running', lease_owner = %s, fence = fence + 1, "
            "lease_expires_at = now() + interval '1 minute', claimed_at = now() WHERE id = %s",
            [worker(), run.pk],
        )
        other.commit()
        outcome = migration.result(timeout=LIMIT_SECONDS)
        assert isinstance(outcome.answer, Stays)
        assert outcome.answer.reason is Reason.AT_WORK
    run.refresh_from_db()
    assert (run.version, run.attempts.count()) == (1, 0)


def test_of_many_migrations_at_once_one_moves_the_run() -> None:
    first, second = step_versions()
    with process_with(first, second):
        run = start(first.name, {}, tenant=tenant(), version=1)
        commit(claimed(run), 1, go_on=False)
        given = at_once(*(partial(migrate_run, run.pk, 2, by=BY) for _ in range(6)))
        moved = [each for each in given if isinstance(each, Outcome)]
        assert len(moved) == 1
        assert isinstance(moved[0].answer, Moves)
        assert {str(each) for each in given if each is not moved[0]} == {
            f"run {run.pk} is of version 2 of {first.name} already: runs move to later versions "
            "only"
        }
        assert AuditEntry.objects.filter(verb="run migrated").count() == 1
        assert list(run.attempts.order_by("fence").values_list("step", "fence")) == [
            ("work", 1),
            ("worked", 2),
        ]
        run.refresh_from_db()
        following = claim_run(run.pk, worker())
        assert isinstance(following, Claim)
        assert (following.fence, following.step.name) == (3, "after")
    assert Run.objects.get().version == 2
