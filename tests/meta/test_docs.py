"""Documentation that the code knows is fresh, and what promises.md names is there."""

from __future__ import annotations

import re
from pathlib import Path

from romulus_site.management.commands.docs import PAGES, generated

ROOT = Path(__file__).resolve().parents[2]


def test_what_is_generated_is_fresh() -> None:
    stale = [path for path, text in generated().items() if (ROOT / path).read_text() != text]
    assert stale == [], "run `make docs`"


def test_no_provider_has_a_page_left_that_is_not_shipped_any_more() -> None:
    kept = {path.relative_to(ROOT) for path in (ROOT / PAGES).iterdir()}
    assert kept == {path for path in generated() if path.parent == PAGES}


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
