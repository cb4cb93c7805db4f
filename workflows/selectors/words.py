"""Small pieces of text that several pages of runs share."""

from __future__ import annotations

from decimal import Decimal

from workflows.core.definitions import END
from workflows.models import Attempt, Run

LABELS_SHOWN = 3


def counted(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def money(amount: Decimal | None, currency: str) -> str:
    """What is at stake: "EUR 1,240.00"; empty where no money is."""
    return "" if amount is None else f"{currency} {amount:,.2f}".strip()


def title_of(run: Run) -> str:
    """What people call a run: its workflow in words."""
    return run.workflow.replace("_", " ").replace(".", ": ").capitalize()


def label_of(run: Run) -> str:
    """What tells a run from others of its workflow: its start key, else its labels."""
    if run.start_key:
        return run.start_key
    labels = list((run.labels or {}).items())[:LABELS_SHOWN]
    return ", ".join(f"{name}: {value}" for name, value in labels)


def heading(run: Run) -> str:
    """What its page is headed: with what tells it from others, such as its place among those that
    another run started."""
    number = "" if run.parent_index is None else f"number {run.parent_index + 1:,}"
    what = label_of(run) or number
    return f"{title_of(run)}, {what}" if what else title_of(run)


def try_of(attempt: Attempt) -> str:
    """The how-manieth it is: "try 2", "visit 3, try 1"."""
    visit = f"visit {attempt.visit}, " if attempt.visit > 1 else ""
    return f"{visit}try {attempt.number}"


def way_of(target: str) -> str:
    """Where a step leads to."""
    return "the end" if target == END else target
