"""Small pieces of text that several pages of runs share."""

from __future__ import annotations

from workflows.models import Run

LABELS_SHOWN = 3


def counted(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def title_of(run: Run) -> str:
    """What people call a run: its workflow in words."""
    return run.workflow.replace("_", " ").replace(".", ": ").capitalize()


def label_of(run: Run) -> str:
    """What tells a run from others of its workflow: its start key, else its labels."""
    if run.start_key:
        return run.start_key
    labels = list((run.labels or {}).items())[:LABELS_SHOWN]
    return ", ".join(f"{name}: {value}" for name, value in labels)
