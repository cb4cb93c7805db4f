"""The body of a delivery: read within a limit, unpacked within the same limit.

Never more is held than the limit twice over, whatever a header claims or a small body unpacks to.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection

from workflows.core.errors import BodyBroken, DeliveryRefused
from workflows.core.sources import Refusal

PIECE = 64 * 1024
# How zlib is told what comes: gzip, or a zlib stream (what HTTP calls deflate).
ENCODINGS = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
# A sender packs a body as one stream, or as a few; each costs a copy of what follows it.
MAX_STREAMS = 100


def too_large(limit: int) -> DeliveryRefused:
    return DeliveryRefused(Refusal.SIZE, f"it is larger than the {limit:,} bytes that are taken")


def read_within(read: Callable[[int], bytes], length: int | None, limit: int) -> bytes:
    """Return a body byte for byte, read once.

    Args:
        read: gives at most so many bytes, none at the end.
        length: as the sender has declared it; None where it comes in chunks.

    Raises:
        DeliveryRefused: it is declared, or turns out, to be larger; nothing more is read.
        BodyBroken: it ended before its declared length.
    """
    if length is not None and length > limit:
        raise too_large(limit)
    body = bytearray()
    while piece := read(PIECE):
        body += piece
        if len(body) > limit:
            raise too_large(limit)
    if length is not None and len(body) != length:
        raise BodyBroken(Refusal.ENCODING, "it ended before its declared length")
    return bytes(body)


def encoding_of(header: str, allowed: Collection[str]) -> str:
    """The encoding that a `Content-Encoding` header names; empty for none.

    Raises:
        DeliveryRefused: it is not one of those that the source takes, or more than one.
    """
    named = header.strip().lower()
    if named in ("", "identity"):
        return ""
    if named not in allowed or named not in ENCODINGS:
        taken = ", ".join(sorted(allowed)) or "none"
        raise DeliveryRefused(Refusal.ENCODING, f"its encoding is not taken; those taken: {taken}")
    return named


def unpacked(body: bytes, encoding: str, limit: int) -> bytes:
    """Return what `body` is when it is unpacked, one stream after another.

    Raises:
        DeliveryRefused: it unpacks to more than `limit` bytes.
        BodyBroken: it is not what its encoding says, is cut short, or has too many streams.
    """
    if not encoding:
        return body
    if not body:
        raise broken(encoding)
    data = bytearray()
    rest = body
    for _ in range(MAX_STREAMS):
        stream = zlib.decompressobj(ENCODINGS[encoding])
        try:
            data += stream.decompress(rest, limit + 1 - len(data))
        except zlib.error:
            raise broken(encoding) from None
        if len(data) > limit:
            raise too_large(limit)
        if not stream.eof:
            raise broken(encoding)
        rest = stream.unused_data
        if not rest:
            return bytes(data)
    raise broken(encoding)


def broken(encoding: str) -> BodyBroken:
    return BodyBroken(Refusal.ENCODING, f"it is no {encoding}, or was cut short")
