"""Sealing what must not lie in the open, by keys that can be rotated.

`ROMULUS_KEYS` may hold several keys while one is replaced: the first seals, all of them open. An
old key must stay in the list for as long as anything that it sealed is kept: nothing is sealed
anew by itself. Fernet of the `cryptography` package: AES in CBC mode under an HMAC, so that what
was changed does not open.
"""

from __future__ import annotations

import base64
from functools import lru_cache

from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


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
