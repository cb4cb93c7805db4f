"""Style sheets are whole: a brace that is lost takes all that follows with it, and says nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

STYLES = sorted((Path(__file__).resolve().parents[2] / "static" / "css").glob("*.css"))


def test_there_are_style_sheets_to_look_at() -> None:
    assert STYLES


@pytest.mark.parametrize("path", STYLES, ids=lambda path: path.name)
def test_every_block_is_closed_and_layers_lie_in_nothing(path: Path) -> None:
    text = re.sub(
        r"/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), path.read_text(), flags=re.S
    )
    depth = 0
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("@layer") and line.endswith("{"):
            assert depth == 0, f"line {number}: a block before it is not closed"
        depth += line.count("{") - line.count("}")
        assert depth >= 0, f"line {number}: closes what was not opened"
    assert depth == 0, "a block is not closed"
