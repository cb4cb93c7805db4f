"""One operation of a lane, and what comes of sending it."""

from __future__ import annotations

from uuid import UUID

from reconciliation.adapters.base import Prepared, Transmitted
from reconciliation.core.classify import classify
from reconciliation.core.matching import Intended
from reconciliation.core.states import TransmissionState
from tests.contract.far_side import FarSide, Said, Seen
from tests.contract.lanes import Lane, new_operation

LONG = 10.0
ATTEMPT = UUID("01890000-0000-7000-8000-000000000001")


class Sending:
    """One operation of a lane, and what comes of sending it."""

    def __init__(self, lane: Lane, side: FarSide) -> None:
        self.lane, self.side = lane, side
        self.operation = new_operation()
        self.adapter = lane.at(side.url)
        stored = lane.prepared(self.adapter, self.operation).to_bytes()
        # As the ledger has it: what is sent is what was kept.
        self.prepared = Prepared.from_bytes(stored)

    def send(self, seconds: float = LONG) -> Transmitted:
        return self.adapter.transmit(
            self.prepared, self.lane.action, self.operation, ATTEMPT, seconds
        )

    def answered(self, said: Said) -> Transmitted:
        self.side.answers = lambda _seen: said
        return self.send()

    def accepted(self, seen: Seen) -> Said:
        return self.lane.accepted(seen, self.lane.marked(seen))

    def state(self, outcome: Transmitted) -> TransmissionState:
        return classify(outcome.report, self.lane.with_contract()).state

    def intended(self) -> Intended:
        return Intended(
            str(self.operation), self.lane.account, self.lane.region, self.prepared.fields
        )
