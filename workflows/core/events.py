"""A delivery on its way into the inbox, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

MAX_EVENT_ID, MAX_TYPE, MAX_CORRELATION = 300, 200, 300  # characters
MAX_PROBLEM = 500


@dataclass(frozen=True, slots=True)
class Incoming:
    """What a source's rules found in an authentic delivery.

    Attributes:
        event_id: the sender's own; None where a delivery of the wrong shape has none.
        body: byte for byte as it came, compressed or not.
        encoding: of the body, such as `gzip`; empty as it is.
        problem: why it is not of the shape that its source declares, for people; it is kept as
            `rejected` then and no wait gets it. Empty for what is well.
    """

    source: UUID
    tenant: UUID
    event_id: str | None
    type: str
    correlation: str
    body: bytes
    content_type: str = "application/json"
    encoding: str = ""
    problem: str = ""


class Outcome(StrEnum):
    MATCHED = "matched"  # a wait got it
    STORED = "stored"  # kept for a wait that may come
    LATE = "late"  # the wait that it would have fitted is over
    AMBIGUOUS = "ambiguous"  # more than one wait could take it: kept, and a person is asked
    DUPLICATE = "duplicate"  # this source has sent this ID before
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a delivery; it is committed. `event` is the first one's for a duplicate."""

    event: UUID
    outcome: Outcome
