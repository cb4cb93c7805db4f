"""Facts for tables of `decide`: a contract of each kind, and short names for what is known."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
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
from reconciliation.core.facts import Facts, Known, Sent
from reconciliation.core.states import EvidenceKind, OperationState, TransmissionState

T0 = datetime(2026, 3, 10, 3, 0, tzinfo=UTC)

ANSWERS = (
    AnswerRule(status="2xx", means=Meaning.ACKNOWLEDGED, resolves_earlier=True),
    AnswerRule(status=409, error_code="key_in_use", means=Meaning.IN_FLIGHT),
    AnswerRule(status=400, error_type="idempotency_error", means=Meaning.KEY_MISMATCH),
    AnswerRule(status=429, means=Meaning.REJECTED, retry=Retry.SAME_KEY),
    AnswerRule(status=400, error_type="invalid_request_error", means=Meaning.REJECTED),
)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def contract(**changes: Any) -> Contract:
    """A contract that claims nothing, but for `changes`."""
    fields: dict[str, Any] = {
        "slug": "test",
        "version": 1,
        "name": "Test",
        "reviewed_on": date(2026, 3, 1),
        "review_again_on": date(2027, 3, 1),
        "sources": (Source(title="here", evidence="observed"),),
        "scope": ("account",),
        "answers": ANSWERS,
        "timeout_seconds": 10,
        "budget": Budget(
            transmissions=3,
            not_sent=5,
            look_ups=3,
            first_pause_seconds=2,
            longest_pause_seconds=60,
        ),
    }
    return Contract(**(fields | changes))


KEY = KeyRule(carrier="header", name="Idempotency-Key")
REPLAY = ReplayRule(retention_floor_seconds=3600, margin_seconds=600)
LOOK_UP = LookUpRule(marker="metadata.operation", visibility_lag_seconds=5)
PROVING = LookUpRule(
    marker="metadata.operation", visibility_lag_seconds=5, absence_proof_after_seconds=60
)

BLIND = contract()
KEYED = contract(key=KEY, replay=REPLAY)
OVERLAPPING = contract(key=KEY, replay=REPLAY.model_copy(update={"overlaps": True}))
LOOKED_UP = contract(look_up=LOOK_UP)
ABSENCE_PROVES = contract(look_up=PROVING)
BOTH = contract(key=KEY, replay=REPLAY, look_up=LOOK_UP)
VERIFYING = contract(key=KEY, replay=REPLAY, verifies=True)

S = TransmissionState


def sent(number: int, state: TransmissionState, seconds: float = 0, **fields: Any) -> Sent:
    """A transmission that started `seconds` after T0 and is surely over 11 s later."""
    return Sent(number, state, at(seconds), at(seconds + 11), **fields)


def known(kind: EvidenceKind, seconds: float, **fields: Any) -> Known:
    return Known(kind, at(seconds), **fields)


RECEIPT = known(EvidenceKind.RECEIPT, 1, completes=True, resource="r_1")


def facts(
    contract: Contract,
    *transmissions: Sent,
    seen: tuple[Known, ...] = (),
    state: OperationState = OperationState.UNKNOWN,
    **fields: Any,
) -> Facts:
    """Facts about an operation that was opened at T0; the window as it would be stored."""
    first = transmissions[0].started_at if transmissions else None
    window = first + contract.replay.window if first and contract.replay else None
    return Facts(
        contract=contract,
        state=state,
        opened_at=T0,
        sent=transmissions,
        known=seen,
        **({"replay_not_after": window} | fields),
    )
