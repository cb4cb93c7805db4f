"""What an adapter is: it prepares a request, transmits it once, looks up, and verifies.

One call of `transmit` is one request on the wire: no retry, no redirect, no hidden timeout. It
reports how far it came and what was answered; what that proves is the core's to say.
"""

from __future__ import annotations

import base64
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Self
from uuid import UUID

from reconciliation.core.addresses import Allowed
from reconciliation.core.classify import Report
from reconciliation.core.contracts import Contract
from reconciliation.core.errors import InvalidProvider
from reconciliation.core.matching import Found


@dataclass(frozen=True)
class Connection:
    """Where and as whom a provider is spoken to: pinned when the key is minted.

    `allowed`: what may be called beside public addresses.
    """

    base_url: str
    account: str
    region: str
    credential: str = field(repr=False)
    settings: Mapping[str, Any] = field(default_factory=dict)
    allowed: tuple[Allowed, ...] = ()


@dataclass(frozen=True)
class Prepared:
    """The exact request, without credentials. Stored sealed, and sent again as it is.

    Attributes:
        fields: what was meant, by the names under which the provider's records show it.
        parameters: all of what was intended, as the author gave it.
        expected: what must be true just before it is sent, by JMESPath, and `read_path` is where
            that is read; empty for nothing.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    fields: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    expected: Mapping[str, Any] = field(default_factory=dict)
    read_path: str = ""

    def to_bytes(self) -> bytes:
        fields = asdict(self) | {"body": base64.b64encode(self.body).decode()}
        return json.dumps(fields).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        fields = json.loads(data)
        return cls(**(fields | {"body": base64.b64decode(fields["body"])}))


@dataclass(frozen=True)
class Transmitted:
    """What came of one transmission.

    Attributes:
        record: what an answer of success shows of the resource.
        detail: a short text for people, free of secrets and payload.
    """

    report: Report
    record: Found | None = None
    request_id: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Unavailable:
    """The provider could not be asked. `throttled`: it was asked too often, it says."""

    detail: str
    retry_after_seconds: float | None = None
    throttled: bool = False


@dataclass(frozen=True)
class Verified:
    """Whether the result is as it should be, and how it is."""

    met: bool
    detail: str


class Adapter(ABC):
    """Speaks to one provider, for the duration of one call.

    It gets everything that it needs and keeps nothing: no session, no connection, no clock of
    record. It never decides, and it raises for no answer and no network.
    """

    schemes: ClassVar[tuple[str, ...]] = ("http", "https")
    """What its addresses begin with."""

    def __init__(self, connection: Connection, contract: Contract) -> None:
        self.connection = connection
        self.contract = contract

    @abstractmethod
    def check(self) -> list[str]:
        """Return what is wrong with the provider's settings, in words; empty when nothing is."""

    @abstractmethod
    def prepare(
        self, action: str, parameters: Mapping[str, Any], operation: UUID, key: str
    ) -> Prepared:
        """Return the request, byte for byte.

        Raises:
            InvalidProvider: this provider has no such action.
        """

    def precondition_path(self, action: str, parameters: Mapping[str, Any]) -> str:
        """Return where what must be true before the write is read.

        Raises:
            InvalidProvider: nothing can be read before this action.
        """
        del parameters
        raise InvalidProvider(f"nothing can be read before {action}: it has no precondition")

    def read_before(self, prepared: Prepared, seconds: float) -> Verified | Unavailable:
        """Say whether what `prepared` expects is true now; only asked where it expects anything."""
        del prepared, seconds
        return Unavailable("nothing can be read here before a write")

    @abstractmethod
    def transmit(
        self, prepared: Prepared, action: str, operation: UUID, transmission: UUID, seconds: float
    ) -> Transmitted:
        """Send `prepared` once; nothing of it leaves later than `seconds` from now."""

    @abstractmethod
    def look_up(
        self, action: str, operation: UUID, seconds: float, prepared: Prepared | None = None
    ) -> list[Found] | Unavailable:
        """Return the provider's records of `operation`; only called where the contract has it.

        `prepared` is what was sent: with a natural key, what to look for.
        """

    @abstractmethod
    def verify(self, action: str, resource: str, seconds: float) -> Verified | Unavailable:
        """Say whether `resource` is as it should be; only called where the contract has it."""
