"""A workflow for kill tests that waits for an event; what it goes on with is a line in a file."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from workflows.core.definitions import Workflow
from workflows.services.run_view import RunView


class Expected(BaseModel):
    folder: Path
    correlation: str


expecting = Workflow("expecting", version=1, input=Expected)


@expecting.wait(event="charge.refunded")
def refunded(run: RunView) -> str:
    """Wait for the refund"""
    correlation: str = run.input.correlation
    return correlation


@expecting.step()
def tell(run: RunView) -> str:
    """Leave a line with the event that it goes on with"""
    event_id: str = run.output("refunded").event_id
    with (run.input.folder / "told").open("a") as lines:
        lines.write(f"{event_id}\n")
    return event_id
