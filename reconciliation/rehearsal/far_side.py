"""What the destination really holds of an operation, asked past the proxy and past the ledger."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto
from http import HTTPStatus
from uuid import uuid4

from reconciliation.adapters.base import Adapter, Prepared, Unavailable
from reconciliation.adapters.declared import id_at
from reconciliation.adapters.http import HttpAdapter
from reconciliation.adapters.registry import adapter_for
from reconciliation.core.classify import Answer, classify
from reconciliation.core.contracts import Contract, Meaning
from reconciliation.core.matching import Found
from reconciliation.models import Operation, Provider, Sandbox
from reconciliation.rehearsal.breaks import Passage
from reconciliation.rehearsal.client import Destination
from reconciliation.sealing import unseal
from reconciliation.services.providers import connection_to, exceptions_for
from reconciliation.services.rehearsals import BUILT_IN

ASK_AGAIN_SECONDS = 0.5
USUAL = "id"  # where an answer in JSON names what was made


@dataclass(frozen=True)
class Sight:
    """The effects of one operation, and whether the destination itself was asked for them."""

    resources: tuple[str, ...]
    counted: bool


class Looked(Enum):
    """What a look-up of an operation that took effect has shown."""

    FOUND = auto()
    ABSENT = auto()
    UNFILTERED = auto()  # records of others: it does not follow the filter
    AWAY = auto()


class FarSide:
    """A sandbox, spoken to directly."""

    def __init__(self, sandbox: Sandbox, stand_in: Provider) -> None:
        assert stand_in.contract_version is not None
        self.contract: Contract = stand_in.contract_version.contract
        # Reached as the provider itself is: past the proxy, under its own exceptions.
        connection = replace(
            connection_to(stand_in),
            base_url=sandbox.base_url,
            allowed=exceptions_for(sandbox.provider),
        )
        self.adapter: Adapter = adapter_for(stand_in.adapter, connection, self.contract)
        self._built_in = stand_in.adapter == BUILT_IN
        self._base_url = sandbox.base_url
        self._action = sandbox.action

    def effects(self, operation: Operation, passages: Iterable[Passage]) -> Sight:
        """Return the resources of `operation`: those that are listed, and those that answers named.

        A provider that can be asked for nothing is known by its answers alone.
        """
        named = self._named_in(passages)
        listed = self._listed(operation, bool(named))
        everything = tuple(dict.fromkeys([*(listed or ()), *named]))
        return Sight(everything, counted=listed is not None)

    def _named_in(self, passages: Iterable[Passage]) -> list[str]:
        answers = [answer for passage in passages for answer in passage.answers]
        names = [self._resource_in(answer.body) for answer in answers if answer.is_success]
        return [name for name in names if name]

    def _resource_in(self, body: bytes) -> str | None:
        """The resource that an answer names; None in a format that only its client can read."""
        declared = (
            self.adapter.action(self._action) if isinstance(self.adapter, HttpAdapter) else None
        )
        try:
            return id_at(declared.resource if declared else USUAL, json.loads(body))
        except ValueError:
            return None

    def _listed(self, operation: Operation, expected: bool) -> list[str] | None:
        if self._built_in:
            with Destination(self._base_url) as destination:
                found = destination.effects(operation=str(operation.pk))
            return [effect.resource_id for effect in found]
        if self.contract.look_up is None:
            return None
        return self._asked(lambda: self._look_up(operation), expected, self._lag)

    @property
    def _lag(self) -> float:
        """For how long what was made may be invisible."""
        rule = self.contract.look_up
        return rule.visibility_lag_seconds if rule else 0

    def _records(self, operation: Operation) -> list[Found] | Unavailable:
        prepared = Prepared.from_bytes(unseal(operation.request_sealed))
        seconds = self.contract.timeout_seconds
        return self.adapter.look_up(self._action, operation.pk, seconds, prepared)

    def _look_up(self, operation: Operation) -> list[str] | None:
        records = self._records(operation)
        if isinstance(records, Unavailable):
            return None
        return [record.resource for record in records if is_ours(record, operation)]

    @staticmethod
    def _asked(ask: Callable[[], list[str] | None], expected: bool, lag: float) -> list[str] | None:
        limit = time.monotonic() + lag + ASK_AGAIN_SECONDS
        found = ask()
        while not found and expected and time.monotonic() < limit:
            time.sleep(ASK_AGAIN_SECONDS)
            found = ask()
        return found

    def looked_up(self, operation: Operation) -> Looked:
        """Ask as reconciliation would, until the record is there or its lag is over."""
        answers: list[list[Found] | Unavailable] = []

        def ask() -> list[str] | None:
            records = self._records(operation)
            answers.append(records)
            return None if isinstance(records, Unavailable) else [each.resource for each in records]

        self._asked(ask, True, self._lag)
        last = answers[-1]
        if isinstance(last, Unavailable):
            return Looked.AWAY
        if any(is_ours(record, operation) for record in last):
            return Looked.FOUND
        return Looked.UNFILTERED if last else Looked.ABSENT

    def with_other_parameters(
        self, operation: Operation, parameters: dict[str, object]
    ) -> Meaning | None:
        """Send other parameters under the operation's key; return what the answer means. None: no
        answer came that says anything of them, so nothing was shown."""
        prepared = self.adapter.prepare(
            self._action, changed(parameters), operation.pk, operation.idempotency_key
        )
        seconds = self.contract.timeout_seconds
        sent = self.adapter.transmit(prepared, self._action, operation.pk, uuid4(), seconds)
        proves = classify(sent.report, self.contract)
        return proves.meaning if speaks(sent.report.answer) and not proves.for_now else None


def speaks(answer: Answer | None) -> bool:
    """Whether the provider itself said something of the request: not of itself, and not half."""
    if answer is None or not (answer.authentic and answer.complete):
        return False
    return answer.status < HTTPStatus.INTERNAL_SERVER_ERROR


def is_ours(record: Found, operation: Operation) -> bool:
    return bool(record.resource) and record.operation == str(operation.pk)


def changed(parameters: dict[str, object]) -> dict[str, object]:
    """The same parameters, one of them with another value: a number before a text."""
    for name, value in parameters.items():
        if isinstance(value, int) and not isinstance(value, bool):
            return {**parameters, name: value + 1}
    for name, value in parameters.items():
        if isinstance(value, str):
            return {**parameters, name: f"{value}x"}
    return {**parameters, "other": "x"}
