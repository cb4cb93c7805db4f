"""The certificates with which AWS SNS signs: fetched from AWS alone, within limits, and kept.

A source may name its certificates instead; then nothing is ever fetched for it. Who controls the
address is checked before (`core.sns.certificate_address`), whose server it is by TLS.
"""

from __future__ import annotations

import threading
import time

import httpx
import structlog

from workflows.core.sns import read_certificate

log = structlog.get_logger(__name__)

FETCH_SECONDS = 3.0
MAX_BYTES = 32 * 1024
# An address names one certificate for ever: AWS rotates by a new address.
KEEP_SECONDS = 24 * 3600
# After a failure the next try is not made at once for every message that arrives meanwhile.
AGAIN_SECONDS = 10.0
MAX_KEPT = 50


class CertificateAway(Exception):
    """The certificate cannot be had now; the message may come again."""


_kept: dict[str, tuple[float, str]] = {}
_fetching = threading.Lock()


def certificate_at(address: str) -> str:
    """Return the certificate at an address of AWS, as PEM text.

    Raises:
        CertificateAway: it did not come in time, or is none.
    """
    pem = kept(address)
    if pem is None:
        with _fetching:
            pem = kept(address)
            if pem is None:
                pem = keep(address, fetch(address))
    if not pem:
        raise CertificateAway
    return pem


def kept(address: str) -> str | None:
    until, pem = _kept.get(address, (0.0, ""))
    return pem if time.monotonic() < until else None


def keep(address: str, pem: str) -> str:
    if len(_kept) >= MAX_KEPT:
        _kept.clear()
    lasts = KEEP_SECONDS if pem else AGAIN_SECONDS
    _kept[address] = time.monotonic() + lasts, pem
    return pem


def fetch(address: str) -> str:
    """The certificate; empty when it does not come, or is none."""
    try:
        text = download(address)
        read_certificate(text)
    except (httpx.HTTPError, ValueError) as error:
        log.warning("sns.certificate_away", error=type(error).__name__)
        return ""
    return text


def download(address: str) -> str:
    data = bytearray()
    with (
        httpx.Client(timeout=FETCH_SECONDS, follow_redirects=False) as client,
        client.stream("GET", address) as answer,
    ):
        answer.raise_for_status()
        for piece in answer.iter_bytes(MAX_BYTES):
            data += piece
            if len(data) > MAX_BYTES:
                raise ValueError("it is too long for a certificate")
    return data.decode("ascii")
