"""Bodies are read and unpacked within one limit, whatever their headers say."""

from __future__ import annotations

import contextlib
import gzip
import io
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.core.errors import BodyBroken, DeliveryRefused
from workflows.core.unpacking import encoding_of, read_within, unpacked

LIMIT = 1000


@given(st.binary(max_size=LIMIT))
def test_a_body_within_the_limit_is_read_byte_for_byte(body: bytes) -> None:
    assert read_within(io.BytesIO(body).read, len(body), LIMIT) == body
    assert read_within(io.BytesIO(body).read, None, LIMIT) == body


def test_a_body_that_is_declared_too_large_is_not_read_at_all() -> None:
    def read(_size: int) -> bytes:
        raise AssertionError("it was read")

    with pytest.raises(DeliveryRefused, match="larger than the 1,000 bytes") as refused:
        read_within(read, LIMIT + 1, LIMIT)
    assert refused.value.reason == "size"


def test_a_body_in_chunks_is_read_to_the_limit_and_no_further() -> None:
    asked: list[int] = []

    def endless(size: int) -> bytes:
        asked.append(size)
        return b"x" * size

    with pytest.raises(DeliveryRefused, match="larger"):
        read_within(endless, None, LIMIT)
    assert len(asked) == 1


def test_a_body_that_ends_early_is_broken() -> None:
    with pytest.raises(BodyBroken, match="ended before its declared length"):
        read_within(io.BytesIO(b"{}").read, 5, LIMIT)


@pytest.mark.parametrize("named", ["", " ", "identity", "IDENTITY"])
def test_no_encoding_is_none(named: str) -> None:
    assert encoding_of(named, []) == ""


@pytest.mark.parametrize("named", ["br", "zstd", "gzip, gzip", "x" * 5000, "é", "deflate"])
def test_an_encoding_that_is_not_allowed_is_refused(named: str) -> None:
    with pytest.raises(DeliveryRefused, match=r"those taken: gzip$") as refused:
        encoding_of(named, ["gzip"])
    assert refused.value.reason == "encoding"
    assert named not in str(refused.value)


@given(st.binary(max_size=LIMIT))
def test_what_was_packed_is_unpacked(body: bytes) -> None:
    assert unpacked(gzip.compress(body), encoding_of("GZIP", ["gzip"]), LIMIT) == body
    assert unpacked(zlib.compress(body), "deflate", LIMIT) == body
    two = gzip.compress(body[:10]) + gzip.compress(body[10:])
    assert unpacked(two, "gzip", LIMIT) == body
    assert unpacked(body, "", LIMIT) == body


@given(st.binary(max_size=200))
def test_what_is_no_gzip_is_broken_and_never_an_error(body: bytes) -> None:
    for encoding in ("gzip", "deflate"):
        with contextlib.suppress(DeliveryRefused):
            unpacked(body, encoding, LIMIT)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize(
    "spoil",
    [lambda body: body[:-1], lambda body: body + b"x", lambda body: body[3:], lambda _: b""],
)
def test_a_body_that_was_cut_or_added_to_is_broken(encoding: str, spoil: object) -> None:
    packed = gzip.compress(b"{}") if encoding == "gzip" else zlib.compress(b"{}")
    assert callable(spoil)
    with pytest.raises(BodyBroken):
        unpacked(spoil(packed), encoding, LIMIT)


def test_a_small_body_that_unpacks_to_much_is_refused_before_it_is_much() -> None:
    bomb = gzip.compress(b"\0" * 30_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(DeliveryRefused, match="larger"):
            unpacked(bomb, "gzip", 100_000)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1_000_000


def test_many_small_streams_count_together() -> None:
    with pytest.raises(DeliveryRefused, match="larger"):
        unpacked(gzip.compress(b"x" * 600) * 2, "gzip", LIMIT)


def test_streams_without_end_are_not_gone_through_one_by_one() -> None:
    """Each costs a copy of what follows it: a million bytes of empty ones took seconds."""
    assert unpacked(gzip.compress(b"") * 99 + gzip.compress(b"{}"), "gzip", LIMIT) == b"{}"
    with pytest.raises(BodyBroken):
        unpacked(gzip.compress(b"") * 100 + gzip.compress(b"{}"), "gzip", LIMIT)
