"""Sealing the exact bytes of a request, and digesting its parameters, with rotatable keys.

`ROMULUS_KEYS` may hold several keys while one is replaced: the first seals and digests, all open.
A digest names its key, so that it can still be checked after a rotation.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import rfc8785
from django.conf import settings

from workflows import sealing
from workflows.sealing import derive

REQUEST = b"seal"  # the purpose that the bytes of requests are sealed for


def seal(data: bytes) -> bytes:
    return sealing.seal(data, REQUEST)


def unseal(data: bytes | memoryview) -> bytes:
    """Raises `cryptography.fernet.InvalidToken` when none of the keys has sealed it."""
    return sealing.unseal(data, REQUEST)


def canonical(parameters: Any) -> bytes:
    """The one serialisation of equal parameters (RFC 8785)."""
    return rfc8785.dumps(parameters)


def digest(parameters: Any) -> str:
    """A keyed digest of canonical parameters: proves equality and tells nothing about them."""
    return digest_by(settings.ROMULUS_KEYS[0], parameters)


def has_digest(parameters: Any, stored: str) -> bool:
    """Whether `stored` is the digest of `parameters` by any of the keys."""
    return any(
        hmac.compare_digest(digest_by(key, parameters), stored) for key in settings.ROMULUS_KEYS
    )


def digest_by(key: str, parameters: Any) -> str:
    name = hashlib.sha256(derive(key, b"name")).hexdigest()[:8]
    return f"{name}:{hmac.new(derive(key, b'digest'), canonical(parameters), 'sha256').hexdigest()}"


REDACTED = "[not shown]"


def redact(parameters: dict[str, Any], visible: list[str]) -> dict[str, Any]:
    """Keep what the provider's allow-list names, by its path with dots; hide every other value."""
    return {name: shown(name, value, visible) for name, value in parameters.items()}


def shown(name: str, value: Any, visible: list[str]) -> Any:
    if name in visible:
        return value
    inner = inner_paths(name, visible)
    return redact(value, inner) if inner and isinstance(value, dict) else REDACTED


def inner_paths(name: str, visible: list[str]) -> list[str]:
    return [path.removeprefix(f"{name}.") for path in visible if path.startswith(f"{name}.")]
