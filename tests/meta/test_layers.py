"""Imports point down only: the layers of `pyproject.toml`, checked as `make check` does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--show-timings"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_every_import_keeps_to_the_layers() -> None:
    linted = lint_imports(ROOT)
    assert linted.returncode == 0, linted.stdout + linted.stderr
    assert "0 broken" in linted.stdout


def test_an_import_against_the_layers_is_found(tmp_path: Path) -> None:
    """The check itself: a core that asks for Django, an execution record that knows recovery."""
    for package in ("romulus_site", "workflows", "reconciliation"):
        for file in (ROOT / package).rglob("*.py"):
            copy = tmp_path / file.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(file.read_text())
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    with (tmp_path / "workflows/core/retry.py").open("a") as file:
        file.write("\nfrom django.db import models\n")
    with (tmp_path / "workflows/services/clock.py").open("a") as file:
        file.write("\nimport reconciliation.models\n")
    linted = lint_imports(tmp_path)
    assert linted.returncode != 0
    assert "workflows.core.retry -> django" in linted.stdout
    assert "workflows.services.clock -> reconciliation.models" in linted.stdout
