"""What every adapter that speaks HTTP shares: where it calls, and one exchange on the wire."""

from __future__ import annotations

from functools import cached_property
from typing import Any
from uuid import UUID

from reconciliation.adapters.answers import Censor
from reconciliation.adapters.base import Adapter, Prepared, Verified
from reconciliation.adapters.declared import search
from reconciliation.adapters.wire import Exchange, Request, exchange
from reconciliation.core.addresses import Address, parse_address
from workflows.core.boundary.canonical import equal

KEY_LENGTH = 36  # a key is the operation's ID
SHOWN = 200  # characters of a provider's request ID


class OverHttp(Adapter):
    """Speaks HTTP through Romulus' own wire."""

    @cached_property
    def address(self) -> Address:
        return parse_address(self.connection.base_url, self.schemes)

    @cached_property
    def censor(self) -> Censor:
        return Censor(self.connection.credential)

    def common_problems(self) -> list[str]:
        """What is wrong whatever the provider: a credential or a key that it cannot carry."""
        problems = []
        credential = self.connection.credential
        if not (credential.isascii() and (credential.isprintable() or not credential)):
            problems.append("a credential of visible characters: no header carries this one")
        rule = self.contract.key
        if rule is not None and rule.max_length < KEY_LENGTH:
            problems.append(
                f"the provider's keys have {rule.max_length} characters at most, ours {KEY_LENGTH}"
            )
        return problems

    def exchange(
        self, prepared: Prepared, operation: UUID | None, transmission: UUID | None, seconds: float
    ) -> Exchange:
        """Send the prepared bytes once, with what is not part of them: credential and tracing."""
        target = self.address.path + prepared.path
        headers = {**prepared.headers, **self.headers(operation, transmission)}
        request = self.signed(Request(prepared.method, target, headers, prepared.body))
        limits = self.contract.deadlines
        return exchange(self.address, self.connection.allowed, request, limits, seconds)

    def signed(self, request: Request) -> Request:
        """Return the request as it leaves, for adapters that sign it at the send."""
        return request

    def headers(self, _operation: UUID | None, _transmission: UUID | None) -> dict[str, str]:
        """The headers that are not part of the stored request: credentials and tracing."""
        return {}

    def as_expected(self, prepared: Prepared, document: Any) -> Verified:
        """Whether what was read is what the write expects, by JMESPath."""
        differing = [
            path
            for path, expected in prepared.expected.items()
            if not equal(search(path, document), expected)
        ]
        # Names alone: what stands there now may be private.
        detail = f"not as expected: {', '.join(differing)}" if differing else "as expected"
        return Verified(not differing, self.censor.clean(detail, 1000))

    def request_id(self, got: Exchange) -> str:
        name = self.contract.request_id_header
        return self.censor.clean(got.header(name), SHOWN) if name else ""
