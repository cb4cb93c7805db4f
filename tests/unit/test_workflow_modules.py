"""What `ROMULUS_WORKFLOWS` names and cannot be loaded is said in one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workflows.core.errors import InvalidDefinition
from workflows.registry import load

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nowhere_at_all", "no module 'nowhere_at_all' on Python's path"),
        ("workflows.examples.nowhere", "no module 'workflows.examples.nowhere'"),
        ("workflows.examples", "module 'workflows.examples' has no workflow in it"),
    ],
)
def test_a_module_without_workflows_is_refused(name: str, sentence: str) -> None:
    with pytest.raises(InvalidDefinition, match=rf"ROMULUS_WORKFLOWS: .*{sentence}"):
        load([name])


def test_what_a_module_itself_lacks_is_its_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lacking_something.py").write_text("import not_installed_here\n")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ModuleNotFoundError, match="not_installed_here"):
        load(["lacking_something"])


def test_a_command_says_what_is_wrong_with_a_workflow_and_where(tmp_path: Path) -> None:
    (tmp_path / "crooked.py").write_text(
        "from workflows.core.definitions import Workflow\n\nflow = Workflow('Not a name')\n"
    )

    ended = subprocess.run(
        [sys.executable, ROOT / "manage.py", "runs"],
        env=os.environ | {"ROMULUS_WORKFLOWS": "crooked", "PYTHONPATH": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert ended.returncode == 1
    assert ended.stderr.startswith("No command runs before this is mended: ")
    assert "crooked.py:3: workflow name 'Not a name'" in ended.stderr
    assert "Traceback" not in ended.stderr
