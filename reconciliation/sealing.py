"""Sealing the exact bytes of a request, and digesting its parameters, with rotatable keys.

`ROMULUS_KEYS` may hold several keys while one is replaced: the first seals and digests, all open.
A digest names its key, so that it can still be checked after a rotation.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from functools import lru_cache
from typing import Any

import rfc8785
from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


def derive(key: str, purpose: bytes) -> bytes:
    """Derive a key for one purpose, so that no key is used for two."""
    return HKDF(SHA256(), length=32, salt=None, info=b"romulus/" + purpose).derive(key.encode())


@lru_cache(maxsize=8)
def fernets(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(base64.urlsafe_b64encode(derive(key, b"seal"))) for key in keys])


def seal(data: bytes) -> bytes:
    return fernets(tuple(settings.ROMULUS_KEYS)).encrypt(data)


def unseal(data: bytes | memoryview) -> bytes:
    """Raises `cryptography.fernet.InvalidToken` when none of the keys has sealed it."""
    return fernets(tuple(settings.ROMULUS_KEYS)).decrypt(bytes(data))


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
