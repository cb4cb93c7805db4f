"""Sealing the exact bytes of a request and hiding what is not to be shown of its parameters."""

from __future__ import annotations

from typing import Any

from workflows import sealing
from workflows.core.boundary.canonical import canonical
from workflows.sealing import derive, digest, has_digest

__all__ = ["REDACTED", "canonical", "derive", "digest", "has_digest", "redact", "seal", "unseal"]

REQUEST = b"seal"  # the purpose that the bytes of requests are sealed for


def seal(data: bytes) -> bytes:
    return sealing.seal(data, REQUEST)


def unseal(data: bytes | memoryview) -> bytes:
    """Raises `cryptography.fernet.InvalidToken` when none of the keys has sealed it."""
    return sealing.unseal(data, REQUEST)


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
