"""Documentation that the code knows is fresh, and what promises.md names is there."""

from __future__ import annotations

import re
from pathlib import Path

from romulus_site.management.commands.docs import (
    PROVIDERS,
    STATES,
    providers_page,
    states_page,
)

ROOT = Path(__file__).resolve().parents[2]


def test_the_state_diagrams_are_fresh() -> None:
    assert (ROOT / STATES).read_text() == states_page(), "run `make docs`"


def test_the_runbooks_of_providers_are_fresh() -> None:
    assert (ROOT / PROVIDERS).read_text() == providers_page(), "run `make docs`"


def test_every_test_that_a_promise_names_exists() -> None:
    text = (ROOT / "docs" / "promises.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    assert named
    for file, function in named:
        source = (ROOT / file).read_text()
        assert not function or f"def {function}(" in source, f"{file}::{function}"


def test_every_promise_has_a_row() -> None:
    text = (ROOT / "docs" / "promises.md").read_text()
    assert [f"P{n}" for n in range(1, 14)] == re.findall(r"^\| (P\d+) \|", text, re.MULTILINE)
