"""A typed client of the destination's administration: for tests, the demonstration, the torture.

It arms faults and reads the truth. Writes to the personalities are not its business: those go
through an adapter, or through a plain HTTP client, as any client's would.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self, TypeVar

import httpx

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Row = TypeVar("Row", bound="DataclassInstance")


class DestinationRefused(Exception):
    """The destination refused an admin call; the message is its own."""

    def __init__(self, status: int, error: Mapping[str, Any]) -> None:
        super().__init__(f"{status}: {error.get('message', 'no message')}")
        self.status = status
        self.error = error


@dataclass(frozen=True)
class Effect:
    """One effect: a resource that was created, as it is now."""

    id: int
    at: str
    request: int
    personality: str
    account: str
    kind: str
    resource_id: str
    operation: str | None
    marker: str | None
    attempt: str | None
    idempotency_key: str | None
    resource: Mapping[str, Any]


@dataclass(frozen=True)
class JournalEntry:
    """One request, from its arrival (`done` is None until it was handled) to its answer."""

    id: int
    at: str
    request_id: str
    method: str
    path: str
    query: str
    personality: str | None
    account: str | None
    operation: str | None
    attempt: str | None
    idempotency_key: str | None
    body: bytes
    fault: str | None
    done: str | None
    answered: str | None
    status: int | None
    effect: int | None


@dataclass(frozen=True)
class ArmedFault:
    """One armed fault; `times` None is until cleared, `applied` counts the requests it met."""

    id: int
    fault: str
    match: Mapping[str, Any]
    times: int | None
    applied: int
    armed_at: str


class Destination:
    """A running destination, by its address."""

    def __init__(self, base_url: str, *, timeout_seconds: float = 10.0) -> None:
        self.base_url = base_url.rstrip("/")
        # Proxies of the environment are for other hosts than the one that a test has started.
        self._http = httpx.Client(base_url=self.base_url, timeout=timeout_seconds, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def health(self) -> bool:
        """Say whether the destination answers and its store is open."""
        try:
            return self._http.get("/_admin/health").is_success
        except httpx.TransportError:
            return False

    def arm(
        self,
        fault: str,
        *,
        personality: str | None = None,
        operation: str | None = None,
        path: str | None = None,
        method: str | None = None,
        account: str | None = None,
        order: str | None = None,
        body: Mapping[str, Any] | None = None,
        times: int | None = 1,
        **parameters: str | float | bool | None,
    ) -> ArmedFault:
        """Arm a fault for the next `times` requests that match (None: until cleared).

        `parameters` are the fault's own (`seconds`, `status`, …); one that is None is not given.
        Raises `DestinationRefused` for an unknown fault or parameter.
        """
        given = {
            "fault": fault,
            "personality": personality,
            "operation": operation,
            "path": path,
            "method": method,
            "account": account,
            "order": order,
            "body": body,
            **parameters,
        }
        asked = {name: value for name, value in given.items() if value is not None}
        return _row(ArmedFault, self._call("POST", "faults", json={**asked, "times": times}))

    def armed(self) -> list[ArmedFault]:
        """Return every armed fault, used up or not, in the order of arming."""
        return [_row(ArmedFault, row) for row in self._call("GET", "faults")["data"]]

    def disarm(self) -> int:
        """Disarm everything; returns how many armed faults were known."""
        return int(self._call("DELETE", "faults")["cleared"])

    def effects(
        self,
        *,
        operation: str | None = None,
        personality: str | None = None,
        account: str | None = None,
    ) -> list[Effect]:
        """Return every effect that matches, oldest first."""
        asked = {"operation": operation, "personality": personality, "account": account}
        answer = self._call("GET", "effects", params=_given(asked))
        return [_row(Effect, row) for row in answer["data"]]

    def journal(self, *, operation: str | None = None, after: int = 0) -> list[JournalEntry]:
        """Return every request after the entry `after`, oldest first."""
        return list(self._journal(operation, after))

    def _journal(self, operation: str | None, after: int | None) -> Iterator[JournalEntry]:
        while after is not None:
            asked = _given({"operation": operation, "after": str(after)})
            page = self._call("GET", "journal", params=asked)
            for row in page["data"]:
                encoded = row["body_base64"]
                body = row["body"].encode() if encoded is None else base64.b64decode(encoded)
                yield _row(JournalEntry, {**row, "body": body})
            after = page["next_after"]

    def settings(
        self,
        personality: str | None = None,
        *,
        retention_seconds: float | None = None,
        visibility_lag_seconds: float | None = None,
        clock_ahead_seconds: float | None = None,
    ) -> Mapping[str, Mapping[str, float]]:
        """Return the settings of every personality, after changing those that are given."""
        if personality is None:
            return self._call("GET", "settings")
        asked = {
            "personality": personality,
            "retention_seconds": retention_seconds,
            "visibility_lag_seconds": visibility_lag_seconds,
            "clock_ahead_seconds": clock_ahead_seconds,
        }
        given = {name: value for name, value in asked.items() if value is not None}
        return self._call("POST", "settings", json=given)

    def release(self) -> None:
        """End the delays that are under way: what was held up goes on at once."""
        self._call("POST", "release")

    def reset(self) -> None:
        """Make the destination forget everything: effects, keys, journal, faults, settings."""
        self._call("POST", "reset")

    def _call(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        answer = self._http.request(method, f"/_admin/{path}", **options)
        document: dict[str, Any] = answer.json()
        if not answer.is_success:
            raise DestinationRefused(answer.status_code, document["error"])
        return document


def _given(values: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}


def _row(kind: type[Row], members: Mapping[str, Any]) -> Row:
    """Return a row of `kind`; members that a newer destination adds are left out."""
    return kind(**{field.name: members[field.name] for field in fields(kind)})
