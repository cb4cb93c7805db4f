"""Whether a request was signed by its source: over the bytes as they came, in constant time.

The bytes are never decoded, parsed or written anew before they are checked. Several secrets count
at once while one replaces another. A refusal says for operators what was wrong, and holds no
header, no payload and no secret.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from workflows.core import sns
from workflows.core.durations import age
from workflows.core.errors import DeliveryRefused
from workflows.core.schemes import HmacSettings, Settings, SnsSettings
from workflows.core.sources import Refusal, Scheme

Headers = Mapping[str, str]  # by lower-case name

# A sender signs with the old and the new secret while one is replaced: two, or a few.
MAX_SIGNATURES = 20
MILLISECOND_DIGITS = 13
STANDARD_PREFIX = "whsec_"
HEX = re.compile(r"[0-9a-fA-F]+")


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret of a source, and from when until when what it signs counts."""

    label: str
    value: str
    valid_from: datetime
    valid_until: datetime | None = None

    def is_in_force(self, now: datetime) -> bool:
        return self.valid_from <= now and (self.valid_until is None or now < self.valid_until)


@dataclass(frozen=True, slots=True)
class Proof:
    """By which secret, or certificate, a request was signed, and when where the scheme says so."""

    label: str
    signed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """What a request says of itself: these digests, by some secret, of these bytes."""

    parts: tuple[bytes, ...]
    digests: tuple[bytes, ...]
    signed_at: datetime | None = None
    algorithm: str = "sha256"

    def is_by(self, key: bytes | None) -> bool:
        if not key:
            return False
        made = hmac.new(key, digestmod=self.algorithm)
        for part in self.parts:
            made.update(part)
        right = made.digest()
        return any(hmac.compare_digest(right, digest) for digest in self.digests)


def verify(
    scheme: Scheme,
    settings: Settings,
    secrets: Sequence[Secret],
    headers: Headers,
    body: bytes,
    now: datetime,
    tolerance: timedelta,
) -> Proof:
    """Return the proof that a source has signed this request, lately.

    Args:
        secrets: all that the source has. One that is not in force proves nothing; its label tells
            operators what was tried. For AWS SNS: the certificates, as PEM text.
        tolerance: how far the time in the signature may lie before or after `now`.

    Raises:
        DeliveryRefused: `signature` or `stale`, with a note for operators.
    """
    proof = prove(scheme, settings, secrets, headers, body, now)
    ensure_fresh(proof, now, tolerance)
    return proof


def prove(
    scheme: Scheme,
    settings: Settings,
    secrets: Sequence[Secret],
    headers: Headers,
    body: bytes,
    now: datetime,
) -> Proof:
    """As `verify`, however long ago it was signed."""
    match scheme:
        case Scheme.AWS_SNS:
            assert isinstance(settings, SnsSettings)
            message = sns.read_message(body, settings.topics)
            signed_by = matching(lambda pem: sns.is_signed_by(message, pem, now), secrets, now)
            return Proof(signed_by.label, sns.signed_at(message))
        case Scheme.BEARER | Scheme.INTERNAL:
            token = bearer_token(headers)
            compare = hmac.compare_digest
            return Proof(matching(lambda value: compare(token, value.encode()), secrets, now).label)
        case _:
            claim = claim_of(scheme, settings, headers, body)
            read = standard_key if scheme is Scheme.STANDARD_WEBHOOKS else str.encode
            found = matching(lambda value: claim.is_by(read(value)), secrets, now)
            return Proof(found.label, claim.signed_at)


def matching(fits: Callable[[str], bool], secrets: Sequence[Secret], now: datetime) -> Secret:
    """The secret in force that fits; where one fits that is not, the note says which."""
    in_force = [secret for secret in secrets if secret.is_in_force(now)]
    if not in_force:
        raise refused("the source has no secret in force")
    for secret in in_force:
        if fits(secret.value):
            return secret
    for secret in secrets:
        if secret not in in_force and fits(secret.value):
            when = "counts no more" if secret.valid_from <= now else "does not count yet"
            raise refused(f"signed with the secret {secret.label!r}, which {when}")
    raise refused("it fits no secret in force")


def ensure_fresh(proof: Proof, now: datetime, tolerance: timedelta) -> None:
    """Raises `DeliveryRefused`: signed too long ago, or in the future."""
    if proof.signed_at is None or abs(now - proof.signed_at) <= tolerance:
        return
    if proof.signed_at < now:
        told = f"signed {age(now - proof.signed_at)} ago"
    else:
        told = f"signed {age(proof.signed_at - now)} in the future"
    raise DeliveryRefused(Refusal.STALE, f"{told}; {age(tolerance)} is the most that is taken")


def refused(note: str) -> DeliveryRefused:
    return DeliveryRefused(Refusal.SIGNATURE, note)


# --- what a request claims --------------------------------------------------------------------


def claim_of(scheme: Scheme, settings: Settings, headers: Headers, body: bytes) -> Claim:
    match scheme:
        case Scheme.STANDARD_WEBHOOKS:
            return standard_claim(headers, body)
        case Scheme.STRIPE:
            return stripe_claim(headers, body)
        case Scheme.GITHUB:
            given = after("sha256=", header(headers, "x-hub-signature-256"))
            return Claim((body,), digests([given], from_hex))
        case Scheme.SLACK:
            at = header(headers, "x-slack-request-timestamp")
            given = after("v0=", header(headers, "x-slack-signature"))
            parts = (f"v0:{at}:".encode(), body)
            return Claim(parts, digests([given], from_hex), moment(at))
        case Scheme.HMAC:
            assert isinstance(settings, HmacSettings)
            return hmac_claim(settings, headers, body)
        case _:
            raise AssertionError(scheme)


def standard_claim(headers: Headers, body: bytes) -> Claim:
    """standardwebhooks.com: `webhook-signature: v1,<base64> v1,<base64>`."""
    message, at = header(headers, "webhook-id"), header(headers, "webhook-timestamp")
    given = header(headers, "webhook-signature").split(" ")
    ours = [item.removeprefix("v1,") for item in given if item.startswith("v1,")]
    return Claim((f"{message}.{at}.".encode(), body), digests(ours, from_base64), moment(at))


def stripe_claim(headers: Headers, body: bytes) -> Claim:
    """`Stripe-Signature: t=<seconds>,v1=<hex>,v1=<hex>,v0=…`"""
    items = [item.partition("=") for item in header(headers, "stripe-signature").split(",")]
    times = [value for name, _, value in items if name == "t"]
    if len(times) != 1:
        raise refused("its Stripe-Signature header names no time, or two")
    ours = [value for name, _, value in items if name == "v1"]
    parts = (f"{times[0]}.".encode(), body)
    return Claim(parts, digests(ours, from_hex), moment(times[0]))


def hmac_claim(settings: HmacSettings, headers: Headers, body: bytes) -> Claim:
    read = from_hex if settings.encoding == "hex" else from_base64
    given = digests([after(settings.prefix, header(headers, settings.header))], read)
    if not settings.timestamp_header:
        return Claim((body,), given, algorithm=settings.algorithm)
    at = header(headers, settings.timestamp_header)
    parts = (f"{at}{settings.separator}".encode(), body)
    return Claim(parts, given, moment(at), settings.algorithm)


def bearer_token(headers: Headers) -> bytes:
    kind, _, token = header(headers, "authorization").partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise refused("its Authorization header holds no bearer token")
    return token.strip().encode()


# --- reading ----------------------------------------------------------------------------------


def header(headers: Headers, name: str) -> str:
    """The value of a header that the signature needs: ASCII, without space around it."""
    value = headers.get(name, "").strip()
    if not value:
        raise refused(f"it has no {name} header")
    if not value.isascii():
        raise refused(f"its {name} header is not ASCII")
    return value


def after(prefix: str, value: str) -> str:
    if not value.startswith(prefix):
        raise refused(f"its signature does not begin with {prefix!r}")
    return value.removeprefix(prefix)


def digests(given: Iterable[str], read: Callable[[str], bytes | None]) -> tuple[bytes, ...]:
    """The digests among what was `given`; the rest may be of a version that is still to come."""
    found = [digest for digest in map(read, list(given)[:MAX_SIGNATURES]) if digest]
    if not found:
        raise refused("its signature header holds no signature that can be read")
    return tuple(found)


def from_hex(text: str) -> bytes | None:
    whole = HEX.fullmatch(text) and len(text) % 2 == 0
    return bytes.fromhex(text) if whole else None


def from_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def standard_key(secret: str) -> bytes | None:
    """The bytes of a Standard Webhooks secret: base64, with or without `whsec_` and padding.

    None for what is none, such as a secret that the source had under another scheme.
    """
    text = secret.removeprefix(STANDARD_PREFIX)
    return from_base64(text + "=" * (-len(text) % 4))


def moment(text: str) -> datetime:
    """A time in seconds, or in milliseconds where it has 13 digits."""
    if not text.isdecimal() or len(text) > MILLISECOND_DIGITS:
        raise refused("the time that it was signed at is not a number of seconds")
    seconds = int(text) / 1000 if len(text) == MILLISECOND_DIGITS else int(text)
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        raise refused("the time that it was signed at is no time") from None
