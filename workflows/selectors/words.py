"""Small pieces of text that several pages of runs share."""

from __future__ import annotations

from datetime import timedelta

from workflows.models import Run

MINUTE, HOUR, DAY = 60, 3600, 86400
LABELS_SHOWN = 3


def length(time: timedelta) -> str:
    """A length of time in two units at most: "84 ms", "2.1 s", "3 h 7 min"."""
    seconds = max(time.total_seconds(), 0.0)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < MINUTE:
        return f"{seconds:.1f} s"
    if seconds < HOUR:
        return f"{seconds // MINUTE:.0f} min"
    if seconds < DAY:
        return f"{seconds // HOUR:.0f} h {seconds % HOUR // MINUTE:.0f} min"
    return f"{seconds // DAY:.0f} d {seconds % DAY // HOUR:.0f} h"


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
