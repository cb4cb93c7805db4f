"""What a `children` step or a parallel group gives holds the results of its runs: as they were,
as private as they were, and once the storage of outputs lets it read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from tests import storages
from tests.factories import advanced, tenant
from tests.flows import drive
from tests.storages import IsAway
from workflows.core.definitions import Child, Workflow
from workflows.models import Run
from workflows.registry import registry
from workflows.services.results import result_of
from workflows.services.run_view import RunView
from workflows.services.runs import start

pytestmark = pytest.mark.django_db

SECRET = "4000 0000 0000 0002"

giving = Workflow("tests.giving")
given: dict[str, Any] = {}


@giving.step()
def give(run: RunView) -> Any:
    return given["value"]


telling = Workflow("tests.telling_no_one")


@telling.step(sensitive=True)
def tell(run: RunView) -> str:
    return str(given["value"])


collecting = Workflow("tests.collecting")


@collecting.children()
def collect(run: RunView) -> list[Child]:
    return [Child(run.input["of"], {}) for _ in range(2)]


@collecting.step()
def first_of_them(run: RunView) -> Any:
    given["read"] = run.output("collect")[0].result
    return given["read"]


grouping = Workflow("tests.grouping")


@grouping.step(sensitive=True)
def card(run: RunView) -> str:
    return str(given["value"])


@grouping.step()
def parcel(run: RunView) -> str:
    return "packed"


grouping.parallel(card, parcel, name="both")


def ended(flow: Workflow, value: Any, of: Workflow = giving) -> Run:
    for each in (giving, telling, collecting, grouping):
        registry.add(each)
    given["value"] = value
    run = start(flow.name, {"of": of.name}, tenant=tenant())
    drive()
    run.refresh_from_db()
    return run


def forms(run: Run, step: str) -> list[tuple[str, bool]]:
    """How the outputs of a step are kept, and whether the secret can be read in their row."""
    rows = run.attempts.outputs().filter(step=step)
    return [(row.output_form, SECRET in str(row.output)) for row in rows]


@pytest.mark.parametrize(
    ("flow", "step"), [(collecting, "collect"), (grouping, "both")], ids=["children", "parallel"]
)
def test_the_ends_of_runs_whose_result_is_sensitive_are_encrypted_too(
    flow: Workflow, step: str
) -> None:
    run = ended(flow, SECRET, of=telling)
    assert run.state == "completed"
    assert forms(run, step) == [("sealed", False)]


def test_those_of_others_are_not() -> None:
    run = ended(collecting, SECRET)
    assert forms(run, "collect") == [("plain", True)]
    assert result_of(run) == SECRET


def test_large_ones_whose_result_is_sensitive_are_encrypted_in_the_storage(
    settings: Settings, tmp_path: Path
) -> None:
    storages.use(settings, tmp_path)
    run = ended(collecting, SECRET * 20, of=telling)
    assert forms(run, "collect") == [("object", False)]
    (row,) = run.attempts.outputs().filter(step="collect")
    assert SECRET.encode() not in (tmp_path / row.output["object"]).read_bytes()


@pytest.mark.parametrize("value", [1e16, {"mass": 1e300}, [-5e-324]], ids=repr)
def test_a_number_that_the_database_writes_at_length_comes_back_as_it_was(value: Any) -> None:
    run = ended(collecting, value)
    assert run.state == "completed"
    assert repr(given["read"]) == repr(value)


def test_a_storage_that_does_not_answer_at_the_join_is_waited_for(
    settings: Settings, tmp_path: Path
) -> None:
    storages.use(settings, tmp_path)
    for each in (giving, collecting):
        registry.add(each)
    given["value"] = SECRET * 20
    run = advanced(start(collecting.name, {"of": giving.name}, tenant=tenant()))
    for child in run.children.all():
        assert advanced(child).state == "completed"
    storages.use(settings, tmp_path, IsAway)
    run = advanced(run)
    assert (run.state, run.step, run.failures) == ("ready", "collect", 0)
    assert "no answer from" in run.failure["message"]
    storages.use(settings, tmp_path)
    Run.objects.filter(pk=run.pk).update(ready_at=Now())
    run = advanced(run)
    assert (run.state, result_of(run)) == ("completed", SECRET * 20)
