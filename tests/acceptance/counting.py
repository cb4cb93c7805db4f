"""Workflows for kill tests: each passage of a step leaves a line in a file, or a row."""

from __future__ import annotations

import time
from pathlib import Path

from pydantic import BaseModel

from workflows.core.definitions import Workflow
from workflows.models import Tenant
from workflows.services.run_view import RunView


class Folder(BaseModel):
    folder: Path
    wait_for_gate: bool = False  # `first` goes on only when the file "gate" is there


counting = Workflow("counting", version=1, input=Folder)


def passed(run: RunView, step: str) -> int:
    """Leave a line for this passage; return how many there are."""
    file = run.input.folder / step
    with file.open("a") as lines:
        lines.write(f"{run.attempt}\n")
    return len(file.read_text().splitlines())


@counting.step()
def first(run: RunView) -> int:
    """Count the passage"""
    count = passed(run, "first")
    gate = run.input.folder / "gate"
    while run.input.wait_for_gate and not gate.exists():
        time.sleep(0.02)
    return count


@counting.step()
def second(run: RunView) -> int:
    """Count the passage, and give what the first gave"""
    passed(run, "second")
    count: int = run.output("first")
    return count


booking = Workflow("booking", version=1, input=Folder)


@booking.step(atomic=True)
def book(run: RunView) -> int:
    """Leave a row for this passage, and a line"""
    count = passed(run, "book")
    Tenant.objects.create(slug=f"row-{count}", name="A row of this database")
    return count


@booking.step()
def confirm(run: RunView) -> int:
    """Give what was booked"""
    count: int = run.output("book")
    return count
