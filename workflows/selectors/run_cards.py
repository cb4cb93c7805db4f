"""What a run's attempts left, and the attempts as leases, as its page shows them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from workflows.core.states import AttemptState, OutputForm
from workflows.models import Attempt
from workflows.pages import Fact, LeaseRow, OutputCard
from workflows.selectors.run_history import History, left_output
from workflows.selectors.run_outputs import OUTPUT_READ
from workflows.selectors.words import counted

FACTS_SHOWN = 6
TEXT_SHOWN = 200
LEASES_SHOWN = 30


def output_cards(history: History, *, payloads: bool) -> tuple[OutputCard, ...]:
    return tuple(
        OutputCard(
            step=output.step,
            fence=output.fence,
            number=output.number,
            visit=output.visit,
            committed_at=output.ended_at,
            facts=tuple(output_facts(output)) if payloads else (),
            hidden=not payloads,
            refused=output.state == AttemptState.SUPERSEDED,
            worker=history.worker(output),
        )
        for output in history.outputs
    )


def output_facts(output: Attempt) -> list[Fact]:
    content: Any = output.content  # type: ignore[attr-defined]  # annotated in run_outputs
    size: int = output.size  # type: ignore[attr-defined]
    if output.purged_at is not None:
        return [Fact("value", f"purged on {output.purged_at:%Y-%m-%d}: kept no longer")]
    if output.output_form == OutputForm.SEALED:
        return [Fact("value", "sensitive: kept encrypted, and not shown")]
    if output.output_form == OutputForm.OBJECT:
        return [Fact("value", "large: kept in the storage of outputs, and not shown here")]
    if size > OUTPUT_READ:
        return [Fact("value", f"{size:,} bytes stored: too much to show here")]
    if content is None:
        return []
    if not isinstance(content, dict):
        return [Fact("value", shortened(content))]
    shown = list(content.items())[:FACTS_SHOWN]
    facts = [Fact(shortened(name), shortened(value)) for name, value in shown]
    more = len(content) - len(shown)
    return [*facts, Fact("and", f"{counted(more, 'more value')}")] if more else facts


def shortened(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= TEXT_SHOWN else text[: TEXT_SHOWN - 1] + "…"


# --- leases -----------------------------------------------------------------------------------


def lease_rows(history: History) -> tuple[LeaseRow, ...]:
    """The newest attempts, the newest first."""
    newest: Sequence[Attempt] = history.attempts[-LEASES_SHOWN:]
    return tuple(
        LeaseRow(
            fence=attempt.fence,
            worker=history.worker(attempt),
            step=attempt.step,
            number=attempt.number,
            visit=attempt.visit,
            state="" if gave_up(attempt) else attempt.state,
            started_at=attempt.claimed_at,
            ended_at=attempt.ended_at,
            error=how_it_ended(history, attempt),
        )
        for attempt in reversed(newest)
    )


def how_it_ended(history: History, attempt: Attempt) -> str:
    if attempt.state == AttemptState.SUPERSEDED:
        kept = bool(attempt.output_form)
        brought = "what it brought is kept as evidence" if kept else "it changed nothing"
        return f"{history.worker(attempt)} came back too late and was refused: {brought}"
    return "released, without an output" if gave_up(attempt) else attempt.error


def gave_up(attempt: Attempt) -> bool:
    """Whether it ended as it should and yet its step did not: it waits, or is held."""
    return attempt.state == AttemptState.COMMITTED and not left_output(attempt)
