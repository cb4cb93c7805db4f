"""How runs of an earlier version go on: where each position and each output belongs."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from workflows.core.definitions import END, Migration, Registry, Workflow
from workflows.core.errors import InvalidDefinition

HERE = re.escape(__file__)


def third_version() -> Workflow:
    """Version 3 of "refund": load_order, check, tell."""
    refund = Workflow("refund", version=3)

    @refund.step()
    def load_order(run: Any) -> dict[str, Any]:
        return {}

    @refund.step()
    def check(run: Any) -> bool:
        return True

    @refund.step()
    def tell(run: Any) -> None:
        pass

    return refund


def numbered(old: Any) -> Any:
    return {"number": old}


def migration(**declared: Any) -> Migration:
    """A migration from version 2, as registration lets it pass."""
    refund = third_version()
    refund.migrates(from_version=2, **declared)
    Registry().add(refund)
    return refund.migrations[2]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("load", "load_order"),  # renamed
        ("load_twice", "load_order"),  # two that became one
        ("tell", "tell"),  # not mentioned
        ("check", "check"),
        ("ask_boss", None),  # gone: the run cannot go on under this version
    ],
)
def test_a_position_is_mapped_by_name_or_stays(old: str, new: str | None) -> None:
    steps = {"load": "load_order", "load_twice": "load_order"}
    assert migration(steps=steps, outputs={"load_twice": None}).position(old) == new


@pytest.mark.parametrize(
    ("declared", "old", "belongs"),
    [
        ({}, "check", ("check", "T-1")),
        ({}, "ask_boss", None),
        ({"steps": {"load": "load_order"}}, "load", ("load_order", "T-1")),
        ({"outputs": {"load": "load_order"}}, "load", ("load_order", "T-1")),
        ({"outputs": {"check": numbered}}, "check", ("check", {"number": "T-1"})),
        (
            {"steps": {"load": "load_order"}, "outputs": {"load": numbered}},
            "load",
            ("load_order", {"number": "T-1"}),
        ),
        # The run stands at one step, and another one has its output.
        (
            {"steps": {"load": "check"}, "outputs": {"load": "load_order"}},
            "load",
            ("load_order", "T-1"),
        ),
        ({"outputs": {"check": None}}, "check", None),
    ],
)
def test_an_output_goes_where_its_step_went_or_where_it_is_said(
    declared: dict[str, Any], old: str, belongs: tuple[str, Any] | None
) -> None:
    assert migration(**declared).output(old, "T-1") == belongs


def test_names_may_change_places() -> None:
    swapped = migration(steps={"check": "tell", "tell": "check"})
    assert (swapped.position("check"), swapped.position("tell")) == ("tell", "check")


def test_the_input_is_changed_by_a_function_or_stays() -> None:
    assert migration().input is None
    assert migration(input=numbered).input is numbered


def test_the_place_of_a_migration_is_the_line_that_declares_it() -> None:
    refund, frame = third_version(), inspect.currentframe()
    assert frame is not None
    line = frame.f_lineno + 1
    refund.migrates(from_version=2)
    assert refund.migrations[2].place == f"{__file__}:{line}"


@pytest.mark.parametrize("version", [3, 4, 0, -1, True, "2"])
def test_a_migration_is_from_an_earlier_version(version: Any) -> None:
    with pytest.raises(
        InvalidDefinition,
        match=rf"^{HERE}:\d+: from_version={version!r}: a version before 3, which is this one$",
    ):
        third_version().migrates(from_version=version)


def test_one_version_has_one_migration_and_both_places_are_named() -> None:
    refund = third_version()
    refund.migrates(from_version=1)
    refund.migrates(from_version=2)
    with pytest.raises(
        InvalidDefinition,
        match=rf"^{HERE}:\d+: the migration from version 2 is already declared at {HERE}:\d+$",
    ):
        refund.migrates(from_version=2)


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        (
            {"steps": {"load": "lode"}},
            "migration from version 2: steps= turns 'load' into 'lode', which this version does "
            "not have",
        ),
        (
            {"steps": {"load": END}},
            "migration from version 2: steps= turns 'load' into '$end', which this version does "
            "not have",
        ),
        (
            {"outputs": {"load": "lode"}},
            "migration from version 2: outputs= gives the output of 'load' to 'lode', which this "
            "version does not have",
        ),
        (
            {"outputs": {"load": numbered}},  # and steps= does not say for which
            "migration from version 2: outputs= gives the output of 'load' to 'load', which this "
            "version does not have",
        ),
        (
            {"steps": {"load": "check", "load_twice": "check"}},
            "'check' would get the outputs of 'load' and of 'load_twice': say in outputs= where "
            "each goes, None for nowhere",
        ),
        (
            {"outputs": {"load": "check", "check": numbered}},
            "'check' would get the outputs of 'load' and of 'check': say in outputs= where each "
            "goes, None for nowhere",
        ),
    ],
)
def test_a_migration_that_cannot_work_is_refused_with_its_place(
    declared: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidDefinition, match=rf"^{HERE}:\d+: {re.escape(said)}$"):
        migration(**declared)


def test_a_migration_may_be_declared_before_the_steps() -> None:
    refund = Workflow("refund", version=2)
    refund.migrates(from_version=1, steps={"load": "load_order"})

    @refund.step()
    def load_order(run: Any) -> None:
        pass

    Registry().add(refund)
    assert refund.migrations[1].position("load") == "load_order"


def test_a_migration_that_is_declared_late_is_checked_before_the_engine_goes_on() -> None:
    refund = third_version()
    Registry().add(refund)
    refund.migrates(from_version=2, steps={"load": "lode"})
    with pytest.raises(InvalidDefinition, match="which this version does not have"):
        refund.after("load_order")
