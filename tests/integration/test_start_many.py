"""Starting many runs in one call: all of them or none, each start key once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from pytest_django import DjangoCaptureOnCommitCallbacks

from tests.factories import advanced, ready_provider, tenant
from tests.hinting import hinted
from tests.statements import statements
from workflows.core.errors import InvalidInput, StartConflict, UnknownWorkflow
from workflows.models import Run
from workflows.services.results import result_of
from workflows.services.runs import BATCH, Start, start, start_many

pytestmark = pytest.mark.django_db


def ticket(number: int, **fields: Any) -> dict[str, Any]:
    return {"number": f"T-{number}", "subject": "A refund", "body": "Where is it?"} | fields


def many(number: int) -> Iterator[Start]:
    return (Start(ticket(place)) for place in range(number))


def keyed(number: int, **fields: Any) -> list[Start]:
    return [Start(ticket(place, **fields), start_key=f"k-{place}") for place in range(number)]


def started(starts: Any, **options: Any) -> list[Run]:
    return start_many("ticket_triage", starts, tenant=tenant(), **options)


# --- what starts ------------------------------------------------------------------------------


def test_ten_thousand_start_in_one_call_in_their_order() -> None:
    with statements() as sent:
        runs = started(many(10_000))
    assert len(sent) < 50
    assert Run.objects.filter(state="ready").count() == 10_000
    assert [run.input["number"] for run in runs] == [f"T-{place}" for place in range(10_000)]
    assert len({run.pk for run in runs}) == 10_000


@pytest.mark.parametrize("start_key", [None, "k"])
def test_each_is_what_start_would_have_made_of_it(start_key: str | None) -> None:
    given = {"labels": {"team": "desk"}}
    alone = start("ticket_triage", ticket(1), tenant=tenant(), start_key="alone", **given)
    (run,) = started([Start(ticket(1), start_key=start_key, **given)])
    same = ("workflow", "version", "tenant_id", "step", "visit", "input", "labels", "state")
    assert [getattr(run, name) for name in same] == [getattr(alone, name) for name in same]
    stored = Run.objects.get(pk=run.pk)
    for field in Run._meta.concrete_fields:
        assert getattr(run, field.attname) == getattr(stored, field.attname), field.name


def test_none_start_none() -> None:
    assert started([]) == []


def test_more_than_a_batch_of_keys_starts_each_once() -> None:
    starts = keyed(BATCH + 1)
    first = started(starts)
    assert started(starts) == first
    assert Run.objects.count() == BATCH + 1


def test_a_run_that_was_started_among_many_runs_as_any_other() -> None:
    ready_provider("desk", dispatch="paused")
    (run,) = started(many(1))
    run = advanced(run)
    assert (run.state, run.step) == ("waiting", "note_in_desk")
    assert result_of(run) == {"category": "billing", "urgent": False}


def test_workers_are_told_after_the_commit_and_only_of_what_is_new(
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    known = started(keyed(1))
    hinted()
    with django_capture_on_commit_callbacks(execute=True):
        runs = started(keyed(3))
        assert hinted() == []
    assert hinted() == [run.pk for run in runs[1:]]
    assert runs[0] == known[0]


# --- start keys -------------------------------------------------------------------------------


def test_a_key_that_has_started_a_run_gives_that_run() -> None:
    before = start("ticket_triage", ticket(1), tenant=tenant(), start_key="k-1")
    runs = started(keyed(3))
    assert runs[1] == before
    assert Run.objects.count() == 3


def test_ten_thousand_keys_that_were_used_take_no_more_questions_than_a_few() -> None:
    """Whoever could not tell whether the call came through makes it once more."""
    first = started(keyed(10_000))
    with statements() as sent:
        again = started(keyed(10_000))
    assert len(sent) < 50
    assert [run.pk for run in again] == [run.pk for run in first]


def test_a_key_that_is_named_twice_starts_one_run() -> None:
    same = Start(ticket(1), start_key="k")
    first, other, second = started([same, Start(ticket(2)), same])
    assert first == second != other
    assert Run.objects.count() == 2


def test_a_key_that_is_named_twice_is_told_of_all_the_same(
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    hinted()
    with django_capture_on_commit_callbacks(execute=True):
        first, _ = started([Start(ticket(1), start_key="k")] * 2)
    assert hinted() == [first.pk]


@pytest.mark.parametrize("workflow", ["ticket_triage", "refund"])
@pytest.mark.parametrize("of", ["northwind", "southwind"])
def test_a_key_counts_within_its_tenant_and_workflow(workflow: str, of: str) -> None:
    given = {"refund": {"order": "ORD-7001", "amount": "125.00"}, "ticket_triage": ticket(1)}
    before = start(workflow, given[workflow], tenant=tenant(of), start_key="k")
    (run,) = started([Start(ticket(1), start_key="k")])
    assert (run == before) is ((workflow, of) == ("ticket_triage", "northwind"))


def test_a_key_that_was_used_with_another_input_is_a_conflict_that_names_its_place() -> None:
    before = start("ticket_triage", ticket(1), tenant=tenant(), start_key="k-1")
    with pytest.raises(StartConflict) as conflict:
        started(keyed(3, body="Another one."))
    said = str(conflict.value)
    assert said.startswith("run 1 of those to start: start key 'k-1' started run ")
    assert str(before.pk) in said
    assert Run.objects.get() == before  # of the others none has started


def test_a_key_that_is_named_twice_with_two_inputs_is_a_conflict_too() -> None:
    starts = [Start(ticket(1), start_key="k"), Start(ticket(2), start_key="k")]
    with pytest.raises(StartConflict, match="run 1 of those to start: start key 'k'"):
        started(starts)
    assert not Run.objects.exists()


# --- what does not fit ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (Start({"number": "17"}), r"number"),
        (Start(ticket(1), start_key="k" * 201), "start key: plain text of 200 characters at most"),
        (Start(ticket(1), labels={"team": "x" * 201}), "labels: "),
        (Start(ticket(1, body=object())), "body"),
    ],
)
def test_one_that_does_not_fit_starts_none_and_names_its_place(wrong: Start, says: str) -> None:
    tenant()
    with statements() as sent, pytest.raises(InvalidInput, match="run 2 of those to start: ") as e:
        started([*many(2), wrong, *many(2)])
    assert says in str(e.value)
    assert not [statement for statement in sent if "INSERT" in statement]


def test_a_workflow_that_is_not_here_starts_nothing() -> None:
    with pytest.raises(UnknownWorkflow, match=r"no workflow 'tests\.nowhere' here"):
        start_many("tests.nowhere", many(2), tenant=tenant())
    with pytest.raises(UnknownWorkflow, match="version 99"):
        started(many(2), version=99)


# --- transactions -----------------------------------------------------------------------------


def test_they_live_and_die_with_the_transaction_of_their_caller() -> None:
    with transaction.atomic():
        started([*many(2), *keyed(2)])
        transaction.set_rollback(True)
    assert not Run.objects.exists()
    with transaction.atomic():
        started([*many(2), *keyed(2)])
    assert Run.objects.count() == 4


def test_a_conflict_leaves_the_caller_s_transaction_as_it_was() -> None:
    with transaction.atomic():
        other = start("ticket_triage", ticket(1), tenant=tenant(), start_key="k-0")
        with pytest.raises(StartConflict):
            started([*many(2), *keyed(2, body="Another one.")])
        assert Run.objects.get() == other  # and the transaction goes on
    assert Run.objects.get() == other
