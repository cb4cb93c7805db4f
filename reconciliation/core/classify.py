"""What one transmission proves, by the phase it reached and the contract; never by exception name.

"Applied, answer lost" and "never arrived" raise the same exception in every client, so nothing
after the first byte of the request is ever taken for "not sent". Whatever is not proven is
`unknown` (promise P4).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reconciliation.core.contracts import Contract, Meaning, Retry
from reconciliation.core.states import TransmissionState


class Phase(StrEnum):
    """How far a transmission came."""

    RESOLVE = "resolve"  # the name
    CONNECT = "connect"
    TLS = "tls"
    SEND = "send"  # the first byte of the request may have left
    WAIT = "wait"  # the whole request has left
    ANSWER = "answer"  # the whole answer has come


BEFORE_SEND = frozenset({Phase.RESOLVE, Phase.CONNECT, Phase.TLS})


@dataclass(frozen=True)
class Answer:
    """A provider's answer, as the adapter read it.

    Attributes:
        authentic: it comes from the provider itself and not from something in between.
        complete: every byte that it announced has come, and it could be read.
        resource: the created or changed resource that it names.
    """

    status: int
    authentic: bool
    complete: bool
    resource: str | None = None
    error_type: str | None = None
    error_code: str | None = None
    retry_after_seconds: float | None = None


@dataclass(frozen=True)
class Report:
    """What an adapter tells of one transmission.

    `intermediary`: a proxy was spoken to, so that a failed connection may be its word only.
    """

    phase: Phase
    answer: Answer | None = None
    intermediary: bool = False


@dataclass(frozen=True)
class Classification:
    state: TransmissionState
    meaning: Meaning
    resolves_earlier: bool = False
    retry: Retry = Retry.NEVER

    @property
    def for_now(self) -> bool:
        """It was turned away, as by a limit: of the request itself that says nothing."""
        return self.retry is not Retry.NEVER


UNKNOWN = Classification(TransmissionState.UNKNOWN, Meaning.UNKNOWN)
NOT_SENT = Classification(TransmissionState.NOT_SENT, Meaning.UNKNOWN)

STATE_OF = {
    Meaning.ACKNOWLEDGED: TransmissionState.ACKNOWLEDGED,
    Meaning.REJECTED: TransmissionState.REJECTED,
    Meaning.IN_FLIGHT: TransmissionState.UNKNOWN,
    Meaning.KEY_MISMATCH: TransmissionState.UNKNOWN,
    Meaning.EXISTS: TransmissionState.UNKNOWN,
    Meaning.UNKNOWN: TransmissionState.UNKNOWN,
}


def classify(report: Report, contract: Contract) -> Classification:
    """Return what the transmission proves under `contract`."""
    answer = report.answer
    if answer is None:
        never_left = report.phase in BEFORE_SEND and not report.intermediary
        return NOT_SENT if never_left else UNKNOWN
    if not (answer.authentic and answer.complete):
        return UNKNOWN
    rule = next(
        (
            rule
            for rule in contract.answers
            if rule.fits(answer.status, answer.error_type, answer.error_code)
        ),
        None,
    )
    if rule is None or (rule.means is Meaning.ACKNOWLEDGED and not answer.resource):
        return UNKNOWN
    return Classification(STATE_OF[rule.means], rule.means, rule.resolves_earlier, rule.retry)
