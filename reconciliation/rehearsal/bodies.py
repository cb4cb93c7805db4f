"""A request's body off the wire, within a bound, framed by length or in chunks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from io import BufferedIOBase

from reconciliation.rehearsal.wire import Answer, failure

MAX_BODY = 1024 * 1024
# Read and thrown away before a refusal, so that a client which sends all before it reads sees the
# refusal and not a reset. Beyond this it is on its own.
MAX_DISCARDED = 16 * MAX_BODY
BLOCK = 64 * 1024
MAX_CHUNK_LINE = 1024
# Not all that `int` would take: no signs, no underscores, no endless zeros.
CHUNK_LENGTH = re.compile(rb"[0-9A-Fa-f]{1,8}")


@dataclass(frozen=True)
class Body:
    """What was read, or why it was not."""

    content: bytes = b""
    refusal: Answer | None = None

    @property
    def ends_connection(self) -> bool:
        """Whether the next request's first byte can no longer be found."""
        return self.refusal is not None


class _Unreadable(Exception):
    def __init__(self, status: HTTPStatus, message: str) -> None:
        self.answer = failure(status, "invalid_request_error", message, param="body")


def read_body(headers: Message, stream: BufferedIOBase) -> Body:
    """Read the body that `headers` announce; never raises, the refusal says what was wrong."""
    try:
        encodings = headers.get_all("transfer-encoding", [])
        lengths = set(headers.get_all("content-length", []))
        if encodings:
            _check_chunked(encodings, lengths)
            return Body(_chunks(stream))
        return Body(_exactly(stream, _length(lengths)))
    except _Unreadable as unreadable:
        return Body(refusal=unreadable.answer)
    except OSError:
        message = "the body did not arrive"
        return Body(refusal=_Unreadable(HTTPStatus.BAD_REQUEST, message).answer)


def _check_chunked(encodings: list[str], lengths: set[str]) -> None:
    if lengths or [encoding.strip().lower() for encoding in encodings] != ["chunked"]:
        message = "the body's framing is contradictory or unknown"
        raise _Unreadable(HTTPStatus.BAD_REQUEST, message)


def _length(lengths: set[str]) -> int:
    if not lengths:
        return 0
    text = lengths.pop()
    if lengths or not (text.isascii() and text.isdecimal()):
        message = "Content-Length must be one whole number"
        raise _Unreadable(HTTPStatus.BAD_REQUEST, message)
    # Longer texts are larger than any limit, and slow to convert.
    return int(text[:18])


def _exactly(stream: BufferedIOBase, length: int) -> bytes:
    if length > MAX_BODY:
        _discard(stream, length)
        raise _too_large()
    content = stream.read(length)
    if len(content) < length:
        message = f"the body ended after {len(content)} of {length} bytes"
        raise _Unreadable(HTTPStatus.BAD_REQUEST, message)
    return content


def _chunks(stream: BufferedIOBase) -> bytes:
    content = bytearray()
    while length := _chunk_length(stream):
        if len(content) + length > MAX_BODY:
            _discard(stream, length)
            raise _too_large()
        content += _exactly(stream, length)
        if stream.readline(MAX_CHUNK_LINE) != b"\r\n":
            raise _Unreadable(HTTPStatus.BAD_REQUEST, "a chunk is longer than it says")
    while stream.readline(MAX_CHUNK_LINE) not in (b"\r\n", b"\n", b""):
        pass  # trailers mean nothing here
    return bytes(content)


def _chunk_length(stream: BufferedIOBase) -> int:
    digits = stream.readline(MAX_CHUNK_LINE).partition(b";")[0].strip()
    if not CHUNK_LENGTH.fullmatch(digits):
        raise _Unreadable(HTTPStatus.BAD_REQUEST, "a chunk's length cannot be read")
    return int(digits, 16)


def _discard(stream: BufferedIOBase, length: int) -> None:
    left = min(length, MAX_DISCARDED)
    while left > 0 and (block := stream.read(min(BLOCK, left))):
        left -= len(block)


def _too_large() -> _Unreadable:
    message = f"the body is larger than {MAX_BODY} bytes"
    return _Unreadable(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
