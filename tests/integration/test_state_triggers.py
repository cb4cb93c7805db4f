"""No row of a run or an attempt is in a state that there is not, whoever writes it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now

from workflows.core.states import FINAL_RUN_STATES, AttemptState, RunState
from workflows.models import Attempt, Run, Tenant
from workflows.models.ids import new_id

pytestmark = pytest.mark.django_db


def a_run(**fields: Any) -> Run:
    tenant, _ = Tenant.objects.get_or_create(slug="acme", defaults={"name": "Acme"})
    known: dict[str, Any] = {"workflow": "t.flow", "version": 1, "tenant": tenant, "input": {}}
    return Run.objects.create(**known | {"step": "one"} | fields)


def an_attempt(run: Run, **fields: Any) -> Attempt:
    known: dict[str, Any] = {"run": run, "worker": new_id(), "claimed_at": Now(), "ended_at": Now()}
    known |= {"fence": 1, "visit": 1, "number": 1, "step": "one", "state": AttemptState.COMMITTED}
    return Attempt.objects.create(**known | fields)


def of_state(state: RunState) -> dict[str, Any]:
    """The columns that go with a state."""
    return {
        "state": state,
        "lease_owner": new_id() if state is RunState.RUNNING else None,
        "finished_at": Now() if state in FINAL_RUN_STATES else None,
    }


def wrong(state: RunState) -> list[dict[str, Any]]:
    right = of_state(state)
    return [
        {**right, "lease_owner": None if right["lease_owner"] else new_id()},
        {**right, "finished_at": None if right["finished_at"] else Now()},
        {**right, "state": "nowhere"},
    ]


@pytest.mark.parametrize("state", list(RunState))
def test_a_run_has_what_goes_with_its_state_and_nothing_else(state: RunState) -> None:
    a_run(**of_state(state))
    run = a_run()
    assert Run.objects.filter(pk=run.pk).update(**of_state(state)) == 1
    for fields in wrong(state):
        with pytest.raises(IntegrityError, match="run_state_consistent"), transaction.atomic():
            a_run(**fields)
        with pytest.raises(IntegrityError, match="run_state_consistent"), transaction.atomic():
            Run.objects.filter(pk=run.pk).update(**fields)


@pytest.mark.parametrize("column", ["state", "lease_owner", "finished_at"])
def test_one_column_alone_is_looked_at_too(column: str) -> None:
    run = a_run()
    changed = of_state(RunState.RUNNING) | {"finished_at": Now()}
    with pytest.raises(IntegrityError, match="run_state_consistent"), transaction.atomic():
        Run.objects.filter(pk=run.pk).update(**{column: changed[column]})


def test_only_an_ended_attempt_is_a_row() -> None:
    run = a_run()
    ended = [state for state in AttemptState if state is not AttemptState.RUNNING]
    for fence, state in enumerate(ended, start=1):
        an_attempt(run, state=state, fence=fence)
    for state in (AttemptState.RUNNING, "nowhere"):
        with pytest.raises(IntegrityError, match="attempt_state_known"), transaction.atomic():
            an_attempt(run, state=state, fence=99)
        with pytest.raises(IntegrityError, match="attempt_state_known"), transaction.atomic():
            Attempt.objects.filter(run=run, fence=1).update(state=state)


def test_the_tables_that_each_step_writes_to_have_no_check() -> None:
    """PostgreSQL would read and plan it anew for each step."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conname FROM pg_constraint WHERE contype = 'c' AND conrelid IN"
            " ('workflows_run'::regclass, 'workflows_attempt'::regclass)"
        )
        assert cursor.fetchall() == []
