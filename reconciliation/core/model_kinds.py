"""The contracts that the model walks: one of each kind, so that every claim is there with and
without every other, and with numbers that make its borders close."""

from __future__ import annotations

from datetime import date
from typing import Any

from reconciliation.core.contracts import (
    AnswerRule,
    Budget,
    Contract,
    KeyRule,
    LookUpRule,
    Meaning,
    ReplayRule,
    Retry,
    Source,
)

TODAY, NEXT_YEAR = date(2026, 1, 1), date(2027, 1, 1)

SUCCESS = AnswerRule(status="2xx", means=Meaning.ACKNOWLEDGED)
STORED_SUCCESS = AnswerRule(status="2xx", means=Meaning.ACKNOWLEDGED, resolves_earlier=True)
REFUSED = AnswerRule(status=400, error_type="invalid", means=Meaning.REJECTED)
BUSY = AnswerRule(status=429, means=Meaning.REJECTED, retry=Retry.SAME_KEY)
STILL_RUNNING = AnswerRule(status=409, error_code="in_flight", means=Meaning.IN_FLIGHT)
OTHER_BODY = AnswerRule(status=400, error_type="idempotency", means=Meaning.KEY_MISMATCH)
STORED_REFUSAL = AnswerRule(status=402, means=Meaning.REJECTED, resolves_earlier=True)
EXISTS = AnswerRule(status=409, error_code="exists", means=Meaning.EXISTS)

PLAIN = (SUCCESS, REFUSED, BUSY)
WITH_KEY = (STORED_SUCCESS, REFUSED, BUSY, STILL_RUNNING, OTHER_BODY)

KEY = KeyRule(carrier="header", name="Idempotency-Key")
REPLAY = ReplayRule(retention_floor_seconds=3600, margin_seconds=600)
LOOK_UP = LookUpRule(marker="metadata.operation", visibility_lag_seconds=5)
PROVING = LOOK_UP.model_copy(update={"absence_proof_after_seconds": 60})


def kind(name: str, **changes: Any) -> Contract:
    """A contract that claims nothing, but for `changes`."""
    fields: dict[str, Any] = {
        "slug": f"model-{name}",
        "version": 1,
        "name": name.replace("-", " "),
        "reviewed_on": TODAY,
        "review_again_on": NEXT_YEAR,
        "sources": (Source(title="the model", evidence="observed"),),
        "scope": ("account",),
        "answers": PLAIN,
        "timeout_seconds": 10,
        "budget": Budget(first_pause_seconds=2, longest_pause_seconds=60),
    }
    return Contract(**(fields | changes))


KINDS = {
    each.slug.removeprefix("model-"): each
    for each in (
        kind("blind"),
        kind("keyed", key=KEY, replay=REPLAY, answers=WITH_KEY),
        kind(
            "overlapping",
            key=KEY,
            replay=REPLAY.model_copy(update={"overlaps": True}),
            answers=WITH_KEY,
        ),
        # The window ends when the key may be forgotten: no second is to spare.
        kind(
            "no-margin",
            key=KEY,
            replay=ReplayRule(retention_floor_seconds=120, margin_seconds=0),
            answers=WITH_KEY,
        ),
        # Nothing is documented about a key that comes with other parameters.
        kind("other-bodies-open", key=KEY, replay=REPLAY, answers=(STORED_SUCCESS, REFUSED, BUSY)),
        # A refusal is remembered, and so speaks for what was sent before it.
        kind("stored-refusals", key=KEY, replay=REPLAY, answers=(*WITH_KEY, STORED_REFUSAL)),
        # Pauses are longer than what is left of the window.
        kind(
            "short",
            key=KEY,
            replay=ReplayRule(retention_floor_seconds=70, margin_seconds=10),
            answers=WITH_KEY,
            budget=Budget(first_pause_seconds=60, longest_pause_seconds=60),
        ),
        # A person is to see it before everything has been tried.
        kind(
            "limited",
            key=KEY,
            replay=REPLAY,
            answers=WITH_KEY,
            budget=Budget(first_pause_seconds=30, longest_pause_seconds=60, elapsed_seconds=50),
        ),
        kind("verifying", key=KEY, replay=REPLAY, verifies=True, answers=WITH_KEY),
        kind("look-up", look_up=LOOK_UP),
        kind("absence-proves", look_up=PROVING),
        kind("natural-key", look_up=LOOK_UP, answers=(*PLAIN, EXISTS)),
        kind("both", key=KEY, replay=REPLAY, look_up=LOOK_UP, answers=WITH_KEY),
    )
}
