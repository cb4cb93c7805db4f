"""How an answer is read: how long to wait, what may be shown of it, what a record says."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from reconciliation.adapters.declared import ActionSettings, id_at, is_id, search
from reconciliation.adapters.wire import Exchange
from reconciliation.core.matching import Found
from workflows.core.words import HIDDEN, storable

# A provider that says "come back in a year" is asked again tomorrow.
LONGEST_RETRY_AFTER_SECONDS = 86_400.0
# What an error code looks like; any other text of a provider's is not ours to show.
CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
# How AWS says so, with statuses of every kind.
THROTTLES = frozenset({"RequestLimitExceeded", "SlowDown", "Throttling", "ThrottlingException"})
SHORTEST_SECRET = 6  # parts of a credential below this are words


def is_throttled(got: Exchange, code: str | None = None) -> bool:
    """Whether the provider says that it was asked too often."""
    return got.status == HTTPStatus.TOO_MANY_REQUESTS or code in THROTTLES


def retry_after(got: Exchange) -> float | None:
    """What Retry-After says, in seconds: as a number, or as a date by the provider's own clock."""
    text = got.header("Retry-After").strip()
    if not text:
        return None
    seconds = as_number(text)
    if seconds is None:
        until = as_time(text)
        if until is None:
            return None
        now = as_time(got.header("Date")) or datetime.now(UTC)
        seconds = (until - now).total_seconds()
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER_SECONDS)


def as_number(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) else None


def as_time(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def found(declared: ActionSettings, document: Any) -> Found:
    """Read a provider's record as the settings declare."""
    shown = {name: search(path, document) for name, path in declared.record.items()}
    operation = shown.pop("operation", None)
    return Found(
        resource=id_at(declared.resource, document) or "",
        operation=None if operation is None else str(operation),
        account=shown.pop("account", None),
        region=shown.pop("region", None),
        fields=shown,
    )


class Censor:
    """Keeps a credential out of whatever a provider sends back: some echo what they were sent."""

    def __init__(self, credential: str) -> None:
        parts = {credential, *re.split(r"[:\s]", credential)}
        parts |= {base64.b64encode(part.encode()).decode().rstrip("=") for part in parts if part}
        self._secrets = sorted(
            (part for part in parts if len(part) >= SHORTEST_SECRET), key=len, reverse=True
        )

    def clean(self, text: str, limit: int) -> str:
        """Return `text` as it may be kept and shown."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return storable(text, limit)

    def is_clean(self, text: str) -> bool:
        return not any(secret in text for secret in self._secrets)

    def without_secrets(self, value: Any) -> Any:
        """Return a record's field as it may be kept: None where it holds the credential."""
        match value:
            case str():
                return value if self.is_clean(value) else None
            case Mapping() | list():
                return value if self.is_clean(str(value)) else None
            case _:
                return value

    def record(self, record: Found) -> Found:
        """A record as it may be kept."""
        clean = self.without_secrets
        resource = clean(record.resource) or ""
        return Found(
            resource=resource if is_id(resource) else "",
            operation=clean(record.operation),
            account=clean(record.account),
            region=clean(record.region),
            fields={name: clean(value) for name, value in (record.fields or {}).items()},
        )


def in_words(status: int | None, error_type: str | None, error_code: str | None) -> str:
    """An answer in a few words: its status, and its code where it looks like one."""
    codes = [code for code in (error_code, error_type) if code and CODE.fullmatch(code)]
    return " ".join([f"HTTP {status}", *codes[:1]])
