"""Failpoints kill the very process, only where they are asked for, and cannot be misspelt."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_django import Settings

from workflows.failpoints import KNOWN, check_names, failpoint

ROOT = Path(__file__).resolve().parents[2]


def run(code: str, armed: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a process of its own in which `armed` is armed."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ
        | {
            "DJANGO_SETTINGS_MODULE": "romulus_site.settings",
            "ROMULUS_FAILPOINTS": armed,
            "ROMULUS_KEYS": "a-key-of-the-tests",
            "DATABASE_URL": "postgres://nobody@127.0.0.1:9/none",  # never connected to
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


PASS = "from workflows.failpoints import failpoint; failpoint('after_claim', 'load'); print('on')"


@pytest.mark.parametrize(
    ("armed", "dies"),
    [
        ("after_claim", True),  # at any step
        ("after_claim@load", True),  # at this one
        ("before_claim, after_claim", True),
        ("", False),
        ("after_claim@tell", False),  # at another one
        ("before_claim", False),
        ("after_claim@", False),
    ],
)
def test_the_process_is_killed_at_the_named_point_alone(armed: str, dies: bool) -> None:
    ended = run(PASS, armed)
    assert ended.returncode == (-signal.SIGKILL if dies else 0), ended.stderr
    assert ended.stdout == ("" if dies else "on\n")


THRICE = (
    "from workflows.failpoints import failpoint\n"
    "for number in range(3):\n"
    "    failpoint('after_claim', 'load' if number else 'tell'); print(number, flush=True)"
)


@pytest.mark.parametrize(
    ("armed", "passed"),
    [
        ("after_claim*1", ""),
        ("after_claim*3", "0\n1\n"),
        ("after_claim*4", "0\n1\n2\n"),
        ("after_claim@load*2", "0\n1\n"),  # the passages of that step alone are counted
        ("after_claim@tell*2", "0\n1\n2\n"),
    ],
)
def test_it_is_killed_at_the_passage_that_is_named(armed: str, passed: str) -> None:
    assert run(THRICE, armed).stdout == passed


def test_a_misspelt_failpoint_keeps_the_process_from_starting() -> None:
    ended = run("import django; django.setup(); print('on')", "before_chekpoint")
    assert ended.returncode == 1
    assert "ROMULUS_FAILPOINTS names ['before_chekpoint']" in ended.stderr
    assert "before_checkpoint" in ended.stderr  # what there is instead


@pytest.mark.parametrize(
    ("armed", "unknown"),
    [
        ([], None),
        (["after_claim", "before_open@create_refund"], None),
        (["after-claim"], "after-claim"),
        (["after_claim", "create_refund@before_open"], "create_refund"),
        (["after_claim*2", "before_open@create_refund*12"], None),
        (["after_claim*0"], "after_claim"),
        (["after_claim*twice"], "after_claim"),
    ],
)
def test_names_are_checked_with_and_without_a_step(armed: list[str], unknown: str | None) -> None:
    if unknown is None:
        check_names(armed)
        return
    with pytest.raises(ValueError, match=unknown):
        check_names(armed)


def test_a_passage_that_nobody_declared_is_a_bug_even_when_nothing_is_armed(
    settings: Settings,
) -> None:
    settings.ROMULUS_FAILPOINTS = []
    with pytest.raises(ValueError, match="unknown failpoint 'anywhere'"):
        failpoint("anywhere")


def test_every_known_failpoint_is_passed_somewhere() -> None:
    passed = {
        name
        for app in ("workflows", "reconciliation")
        for file in (ROOT / app).rglob("*.py")
        for name in re.findall(r'failpoint\("(\w+)"', file.read_text())
    }
    assert passed == KNOWN
