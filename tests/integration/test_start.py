"""Starting runs: what does not fit is refused before anything is stored, and a key starts once."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.db import transaction
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from tests.factories import advanced, tenant
from tests.statements import statements
from workflows.core.definitions import Workflow
from workflows.core.errors import InvalidInput, StartConflict, UnknownWorkflow, UsageError
from workflows.examples.refund import RefundRequest
from workflows.models import Attempt, Run
from workflows.registry import registry
from workflows.services.run_view import RunView
from workflows.services.runs import start

pytestmark = pytest.mark.django_db

REFUND = {"order": "ORD-7001", "amount": "125.00"}

anything = Workflow("tests.anything")  # takes any dict, and gives it back


@anything.step()
def give_back(run: RunView) -> Any:
    given: dict[str, Any] = run.input
    return given


@pytest.fixture(autouse=True)
def known() -> None:
    registry.add(anything)


def refund(**options: Any) -> Run:
    return start("refund", REFUND, tenant=tenant(), **options)


# --- what starts ------------------------------------------------------------------------------


def test_a_run_starts_ready_at_its_first_step_with_its_input_checked() -> None:
    run = refund(labels={"team": "finance"})
    run.refresh_from_db()
    assert (run.state, run.step, run.visit, run.fence) == ("ready", "load_order", 1, 0)
    assert (run.workflow, run.version) == ("refund", 1)
    assert run.input == {"order": "ORD-7001", "amount": "125.00", "currency": "USD"}
    assert run.labels == {"team": "finance"}


def test_a_start_is_one_statement_and_so_one_round_trip() -> None:
    whose = tenant()
    with statements() as sent:
        run = start("refund", REFUND, tenant=whose)
    (stored,) = sent
    assert "INSERT INTO workflows_run" in stored
    assert run.created_at == run.ready_at == Run.objects.get(pk=run.pk).created_at


def test_the_input_may_be_the_type_itself() -> None:
    given = RefundRequest(order="ORD-7001", amount=Decimal("125.00"), currency="EUR")
    run = start("refund", given, tenant=tenant())
    assert run.input == {"order": "ORD-7001", "amount": "125.00", "currency": "EUR"}


def test_workers_are_told_only_after_the_commit(
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    with django_capture_on_commit_callbacks() as told:
        refund()
        assert told == []
    assert len(told) == 1


def test_a_run_lives_and_dies_with_the_transaction_of_its_caller() -> None:
    with transaction.atomic():
        refund(start_key="k")
        transaction.set_rollback(True)
    assert not Run.objects.exists()
    assert refund(start_key="k")


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("input", "says"),
    [
        ({"order": "7001", "amount": "1"}, "at order: "),
        ({"order": "ORD-1", "amount": "-1"}, "at amount: "),
        ({"order": "ORD-1", "amount": "1.234"}, "at amount: "),
        ({"order": "ORD-1", "amount": "NaN"}, "at amount: "),
        ({"order": "ORD-1", "amount": []}, "at amount: "),
        ({"order": "ORD-1"}, "at amount: Field required"),
        ({"order": "ORD-1", "amount": "1", "currency": "usd"}, "at currency: "),
        ({}, r"at order: Field required \(and 1 more\)"),
        ("ORD-1", "at the value itself: "),
        (None, "at the value itself: "),
        ([], "at the value itself: "),
        (17, "at the value itself: "),
    ],
)
def test_an_input_that_does_not_fit_is_refused_with_its_path_and_nothing_is_stored(
    input: Any, says: str
) -> None:
    with pytest.raises(InvalidInput, match=f"^input of refund: {says}"):
        start("refund", input, tenant=tenant(), start_key="k")
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ("\x00", r"at \$\.a\[0\]: text with a NUL"),
        ("\ud800", r"at \$\.a\[0\]: text with half"),
        (2**53 + 1, r"at \$\.a\[0\]: 9007199254740993 is beyond"),
    ],
)
def test_an_input_that_cannot_be_kept_exactly_is_refused_with_its_path(
    part: Any, says: str
) -> None:
    with pytest.raises(InvalidInput, match=f"^input of tests.anything: {says}"):
        start("tests.anything", {"a": [part]}, tenant=tenant())
    assert not Run.objects.exists()


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_does_not_have_is_refused(number: float) -> None:
    with pytest.raises(InvalidInput):
        start("tests.anything", {"a": number}, tenant=tenant())


def test_an_input_that_is_too_large_is_refused_and_nothing_is_stored(settings: Settings) -> None:
    settings.ROMULUS_MAX_INPUT_BYTES = 1000
    with pytest.raises(InvalidInput, match=r"^input of tests.anything: 1,0\d\d bytes, and the lim"):
        start("tests.anything", {"text": "x" * 1000}, tenant=tenant())
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("name", "version", "says"),
    [
        ("refunds", None, "no workflow 'refunds' here; known: .*refund v1"),
        ("refund", 99, "no workflow 'refund' version 99 here; known: .*refund v1"),
        ("", None, "no workflow '' here"),
    ],
)
def test_an_unknown_workflow_is_refused_and_what_is_known_is_named(
    name: str, version: int | None, says: str
) -> None:
    with pytest.raises(UnknownWorkflow, match=says):
        start(name, REFUND, tenant=tenant(), version=version)
    assert not Run.objects.exists()


def test_a_version_that_cannot_exist_is_unknown() -> None:
    with pytest.raises(UnknownWorkflow):
        refund(version=0)


@pytest.mark.parametrize(
    "options",
    [
        {"start_key": "k" * 201},
        {"start_key": "\x00"},
        {"labels": {"a": "\x00"}},
        {"labels": {"a": object()}},
        {"labels": {"a": "x" * 1_000_000}},
    ],
)
def test_a_start_key_or_label_that_cannot_be_kept_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError), transaction.atomic():
        refund(**options)


# --- once per start key -----------------------------------------------------------------------


def test_a_start_key_starts_once() -> None:
    first = refund(start_key="order-7001")
    again = refund(start_key="order-7001")
    assert again.pk == first.pk
    assert Run.objects.count() == 1


def test_a_start_key_gives_its_run_also_after_that_has_ended() -> None:
    run = start("tests.anything", {"a": 1}, tenant=tenant(), start_key="k")
    assert advanced(run).state == "completed"
    assert start("tests.anything", {"a": 1}, tenant=tenant(), start_key="k").state == "completed"
    assert Attempt.objects.count() == 1


def test_equal_inputs_are_one_whatever_their_order_and_form() -> None:
    first = refund(start_key="k")
    given = {"currency": "USD", "amount": Decimal("125.00"), "order": "ORD-7001"}
    assert start("refund", given, tenant=tenant(), start_key="k").pk == first.pk


def test_a_start_key_with_another_input_is_refused_and_the_first_run_stays_as_it_was() -> None:
    first = refund(start_key="k")
    with pytest.raises(StartConflict, match=f"start key 'k' started run {first.pk}"):
        start("refund", REFUND | {"amount": "130.00"}, tenant=tenant(), start_key="k")
    assert list(Run.objects.values_list("pk", "input__amount")) == [(first.pk, "125.00")]


def test_a_refused_start_leaves_the_transaction_of_its_caller_usable() -> None:
    refund(start_key="k")
    with transaction.atomic():
        with pytest.raises(StartConflict):
            start("refund", REFUND | {"amount": "1"}, tenant=tenant(), start_key="k")
        other = refund(start_key="another")
    assert Run.objects.filter(pk=other.pk).exists()


@pytest.mark.parametrize(
    "other",
    [
        {"tenant": "southbay"},
        {"workflow": "tests.anything"},
        {"start_key": "K"},
        {"start_key": None},
    ],
)
def test_another_tenant_workflow_or_key_starts_another_run(other: dict[str, Any]) -> None:
    first = refund(start_key="k")
    options = {"tenant": "northwind", "workflow": "refund", "start_key": "k"} | other
    second = start(
        str(options["workflow"]),
        REFUND,
        tenant=tenant(str(options["tenant"])),
        start_key=options["start_key"],
    )
    assert second.pk != first.pk


def test_without_a_start_key_each_start_is_a_run() -> None:
    assert refund().pk != refund().pk


def test_a_large_number_is_the_same_input_when_it_is_given_again() -> None:
    first = start("tests.anything", {"a": 1e23}, tenant=tenant(), start_key="k")
    assert start("tests.anything", {"a": 1e23}, tenant=tenant(), start_key="k").pk == first.pk
