"""Sealing what must not lie in the open, by keys that can be rotated.

`ROMULUS_KEYS` may hold several keys while one is replaced: the first seals, all of them open. An
old key must stay in the list for as long as anything that it sealed is kept: nothing is sealed
anew by itself. Fernet of the `cryptography` package: AES in CBC mode under an HMAC, so that what
was changed does not open.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from functools import lru_cache
from typing import Any

from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from workflows.core.boundary.canonical import canonical


def derive(key: str, purpose: bytes) -> bytes:
    """Derive a key for one purpose, so that no key is used for two."""
    return HKDF(SHA256(), length=32, salt=None, info=b"romulus/" + purpose).derive(key.encode())


@lru_cache(maxsize=32)
def fernets(keys: tuple[str, ...], purpose: bytes) -> MultiFernet:
    return MultiFernet([Fernet(base64.urlsafe_b64encode(derive(key, purpose))) for key in keys])


def seal(data: bytes, purpose: bytes) -> bytes:
    """Return `data` sealed: ASCII, some 4/3 as long, and opened for the same purpose alone."""
    return fernets(tuple(settings.ROMULUS_KEYS), purpose).encrypt(data)


def unseal(data: bytes | memoryview, purpose: bytes) -> bytes:
    """Raises `cryptography.fernet.InvalidToken` when none of the keys has sealed it for this."""
    return fernets(tuple(settings.ROMULUS_KEYS), purpose).decrypt(bytes(data))


def digest(parameters: Any) -> str:
    """A keyed digest of canonical parameters: proves equality and tells nothing about them.

    It names its key, so that it can still be checked after a rotation.
    """
    return digest_by(settings.ROMULUS_KEYS[0], parameters)


def has_digest(parameters: Any, stored: str) -> bool:
    """Whether `stored` is the digest of `parameters` by any of the keys."""
    return any(
        hmac.compare_digest(digest_by(key, parameters), stored) for key in settings.ROMULUS_KEYS
    )


def digest_by(key: str, parameters: Any) -> str:
    name = hashlib.sha256(derive(key, b"name")).hexdigest()[:8]
    return f"{name}:{hmac.new(derive(key, b'digest'), canonical(parameters), 'sha256').hexdigest()}"
