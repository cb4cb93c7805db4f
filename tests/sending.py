"""Operations that are about to be sent, and what ledger and destination know of them after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reconciliation.core.states import Purpose
from reconciliation.models import ContractVersion, Operation, Transmission
from reconciliation.rehearsal.client import JournalEntry
from reconciliation.services import transmit as transmitting
from reconciliation.services.ledger import open_operation, provider_of
from reconciliation.services.providers import contract_of
from tests.claiming import claim_at_write
from tests.destination import RunningDestination
from tests.factories import quick_contract
from workflows.models import Run
from workflows.services.claims import Claim
from workflows.services.run_view import RunView

# --- what is known of them --------------------------------------------------------------------


def the_operation() -> Operation:
    return Operation.objects.select_related(
        "run", "provider__contract_version", "provider__default_queue", "contract_version"
    ).get()


def posts(destination: RunningDestination) -> list[JournalEntry]:
    """Every write that reached the destination, wherever it was aimed."""
    return [entry for entry in destination.client.journal() if entry.method == "POST"]


def effects(destination: RunningDestination) -> int:
    return len(destination.client.effects())


def ledger(operation: Operation) -> list[tuple[str, str]]:
    return list(operation.transmissions.order_by("number").values_list("purpose", "state"))


# --- contracts --------------------------------------------------------------------------------


def shipped(kind: str) -> dict[str, Any]:
    document: dict[str, Any] = ContractVersion.objects.get(
        slug=f"rehearsal-{kind}", version=1
    ).document
    return document


def parking_contract(kind: str = "keyed") -> ContractVersion:
    """A contract under which a lost write is not repeated before it cannot be on its way."""
    replay = shipped(kind)["replay"] | {"overlaps": False}
    return quick_contract(kind, replay=replay, timeout_seconds=1)


def proving_contract(**changes: Any) -> ContractVersion:
    """Without keys; finding nothing proves that nothing was done, once nothing is on its way."""
    rule = {
        "marker": "metadata.operation",
        "visibility_lag_seconds": 0,
        "absence_proof_after_seconds": 0,
    }
    return quick_contract("lookup", look_up=rule, timeout_seconds=1, **changes)


def lagging_contract() -> ContractVersion:
    """A contract without keys whose records can be asked for only after a second."""
    return quick_contract(
        "lookup", look_up=shipped("lookup")["look_up"] | {"visibility_lag_seconds": 1}
    )


# --- the moment before a send -----------------------------------------------------------------


def opened(claim: Claim) -> Operation:
    """The operation of the write step that `claim` has come to."""
    return open_operation(claim, claim.step.function(RunView(claim)), provider_of(claim))


def begin(operation: Operation, claim: Claim) -> Transmission:
    """Write down that the holder of `claim` sends `operation`; nothing leaves yet."""
    return transmitting.begin(operation, claim, Purpose.FIRST, contract_of(operation))


@dataclass(frozen=True)
class Sender:
    """A worker that has written down that it sends, and has not sent yet."""

    claim: Claim
    operation: Operation
    transmission: Transmission

    def transmit(self) -> Any:
        contract = contract_of(self.operation)
        return transmitting.transmit(self.operation, self.transmission, contract)

    def record(self, outcome: Any) -> None:
        contract = contract_of(self.operation)
        transmitting.record(self.operation, self.transmission, outcome, contract)


def about_to_send(run: Run) -> Sender:
    claim = claim_at_write(run)
    operation = opened(claim)
    return Sender(claim, operation, begin(operation, claim))
