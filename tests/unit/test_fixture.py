"""The smallest rehearsal runs on the standard library alone, and fails when a rule is broken."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reconciliation.rehearsal import fixture

ROOT = Path(__file__).resolve().parents[2]


def test_it_runs_on_the_standard_library_alone() -> None:
    # No packages of the environment, no variables of the caller's: only the tree itself.
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import runpy; " + (
        "runpy.run_module('reconciliation.rehearsal.fixture', run_name='__main__')"
    )
    ran = subprocess.run(
        [sys.executable, "-S", "-I", "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("ok      ") == len(fixture.CASES)
    assert "8 of 8 cases came out as they must" in ran.stdout


def test_a_destination_that_forgets_its_keys_is_found_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def forgetful(there: fixture.Destination, key: str, operation: str, **given: str) -> object:
        there.keys.clear()
        return write(there, key, operation, **given)

    write = fixture.Destination.write
    monkeypatch.setattr(fixture.Destination, "write", forgetful)
    assert fixture.main() == 1
    assert "FAILED  The same key returns the first receipt" in capsys.readouterr().out
