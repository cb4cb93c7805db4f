"""What one transmission proves: by phase and contract, never by what was raised."""

from __future__ import annotations

import pytest

from reconciliation.core.classify import Answer, Classification, Phase, Report, classify
from reconciliation.core.contracts import Meaning, Retry
from reconciliation.core.states import TransmissionState
from tests.unit.facts import BLIND

ACKNOWLEDGED, REJECTED, NOT_SENT, UNKNOWN = (
    TransmissionState.ACKNOWLEDGED,
    TransmissionState.REJECTED,
    TransmissionState.NOT_SENT,
    TransmissionState.UNKNOWN,
)


def answered(status: int, **fields: object) -> Report:
    defaults: dict[str, object] = {"authentic": True, "complete": True}
    return Report(Phase.ANSWER, Answer(status, **(defaults | fields)))  # type: ignore[arg-type]


@pytest.mark.parametrize("phase", [Phase.RESOLVE, Phase.CONNECT, Phase.TLS])
def test_before_the_first_byte_nothing_was_sent(phase: Phase) -> None:
    assert classify(Report(phase), BLIND).state is NOT_SENT


@pytest.mark.parametrize("phase", [Phase.SEND, Phase.WAIT])
def test_after_the_first_byte_nothing_is_known(phase: Phase) -> None:
    assert classify(Report(phase), BLIND).state is UNKNOWN


def test_a_proxy_that_could_not_connect_proves_nothing() -> None:
    assert classify(Report(Phase.CONNECT, intermediary=True), BLIND).state is UNKNOWN


@pytest.mark.parametrize(
    ("report", "state"),
    [
        (answered(201, resource="r_1"), ACKNOWLEDGED),
        (answered(201), UNKNOWN),  # a success that names nothing
        (answered(201, resource="r_1", complete=False), UNKNOWN),
        (answered(201, resource="r_1", authentic=False), UNKNOWN),
        (answered(400, error_type="invalid_request_error"), REJECTED),
        (answered(400, error_type="invalid_request_error", authentic=False), UNKNOWN),
        (answered(400), UNKNOWN),  # not as the contract documents it
        (answered(400, error_type="idempotency_error"), UNKNOWN),
        (answered(409, error_code="key_in_use"), UNKNOWN),
        (answered(429), REJECTED),
        (answered(302), UNKNOWN),
        (answered(500), UNKNOWN),
        (answered(502, authentic=False), UNKNOWN),
        (answered(503), UNKNOWN),
    ],
)
def test_an_answer_proves_what_the_contract_documents(
    report: Report, state: TransmissionState
) -> None:
    assert classify(report, BLIND).state is state


def test_an_answer_carries_what_may_follow_and_whom_it_speaks_for() -> None:
    assert classify(answered(429), BLIND) == Classification(
        REJECTED, Meaning.REJECTED, resolves_earlier=False, retry=Retry.SAME_KEY
    )
    assert classify(answered(201, resource="r_1"), BLIND).resolves_earlier
