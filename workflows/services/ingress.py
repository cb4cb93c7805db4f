"""A delivery's way from the wire into the inbox: bounded, authentic, understood, then committed.

Everything that can be refused is refused before anything is stored. A refusal leaves a count and a
note; a delivery that is authentic and not of its source's shape is kept as `rejected`. An answer of
2xx is given after the commit and never before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import structlog
from django.core.cache import caches

from workflows.core import sns
from workflows.core.errors import DeliveryRefused, RomulusError
from workflows.core.events import Incoming, Outcome, Receipt
from workflows.core.extraction import Found, read_body, read_event
from workflows.core.json_text import NotJson
from workflows.core.schemes import SnsSettings, challenge_of
from workflows.core.signatures import Proof, Secret, verify
from workflows.core.source_rules import essence
from workflows.core.sources import Refusal, Scheme
from workflows.core.unpacking import encoding_of, read_within, unpacked
from workflows.core.words import storable
from workflows.services import inbox
from workflows.services.known_sources import Known, known_source
from workflows.services.refusals import count_refusal
from workflows.services.sns_certificates import certificate_at

log = structlog.get_logger(__name__)

# Senders give up after some seconds, and deliver again: better told so than cut off.
LOCK_SECONDS = 4.0
MAX_CONTENT_TYPE = 100
WINDOW_SECONDS = 60
CONFIRM = (
    "AWS SNS asks whether this source wants the messages of a topic. If so, open the SubscribeURL "
    "in this body, or confirm the subscription at AWS; nothing is followed by itself."
)


@dataclass(frozen=True, slots=True)
class Delivery:
    """A request as it came.

    Attributes:
        headers: by lower-case name.
        length: of the body as declared; None where it comes in chunks.
        read: gives at most so many bytes of the body, none at its end.
    """

    headers: Mapping[str, str]
    length: int | None
    read: Callable[[int], bytes]


class Shape(Enum):
    """What a delivery that was taken turned out to be."""

    EVENT = "event"
    NOT_JSON = "not_json"  # kept, as rejected
    MISFIT = "misfit"  # JSON, but not as its source says; kept, as rejected
    CHALLENGE = "challenge"  # a scheme asks whether this address is meant; nothing is kept


@dataclass(frozen=True, slots=True)
class Taken:
    """An authentic delivery and what became of it; what was kept is committed."""

    shape: Shape
    receipt: Receipt | None = None
    problem: str = ""
    challenge: str = ""


class NoSuchSource(RomulusError):
    """There is no such source, or it is switched off: the same is answered to both."""


class TooMany(DeliveryRefused):
    """More came in this minute than the source takes."""

    def __init__(self, again: int) -> None:
        super().__init__(Refusal.RATE, "more came in this minute than is taken")
        self.again = again


def take_delivery(slug: str, delivery: Delivery) -> Taken:
    """Take a delivery to the source `slug`, or refuse it.

    Raises:
        NoSuchSource
        DeliveryRefused: nothing is stored but a count and a note.
        SourceUnready, CertificateAway: it cannot be judged now; it may come again.
        django.db.Error: the database is away, or something was locked for too long.
    """
    source = known_source(slug)
    if source is None:
        raise NoSuchSource
    try:
        return take_from(source, delivery)
    except DeliveryRefused as refusal:
        note = str(refusal)
        log.info("event.refused", source=slug, reason=str(refusal.reason), note=note)
        count_refusal(source.id, refusal.reason, note, source.now())
        if refusal.reason == Refusal.DISABLED:
            raise NoSuchSource from refusal
        raise


def take_from(source: Known, delivery: Delivery) -> Taken:
    if not source.enabled:
        raise DeliveryRefused(Refusal.DISABLED, "the source is switched off")
    content_type = content_type_of(source, delivery.headers)
    encoding = encoding_of(delivery.headers.get("content-encoding", ""), source.encodings)
    body = read_within(delivery.read, delivery.length, source.max_bytes)
    ensure_authentic(source, delivery.headers, body)
    ensure_within_rate(source)
    plain = unpacked(body, encoding, source.max_bytes)
    shape, found, challenge = understood(source, delivery.headers, plain)
    if shape is Shape.CHALLENGE:
        return Taken(shape, challenge=challenge)
    incoming = Incoming(
        source=source.id,
        tenant=source.tenant,
        event_id=found.event_id,
        type=found.type,
        correlation=found.correlation,
        body=body,
        content_type=content_type,
        encoding=encoding,
        problem=found.problem,
    )
    return Taken(shape, received(incoming, source), found.problem)


# --- whether it is taken ----------------------------------------------------------------------


def content_type_of(source: Known, headers: Mapping[str, str]) -> str:
    """As it was given, bounded: parameters are kept and mean nothing for bytes."""
    given = headers.get("content-type", "")
    if essence(given) not in source.content_types:
        taken = ", ".join(sorted(source.content_types))
        raise DeliveryRefused(
            Refusal.CONTENT_TYPE, f"its content type is not taken; those taken: {taken}"
        )
    return storable(given, MAX_CONTENT_TYPE).encode("ascii", "replace").decode()


def ensure_authentic(source: Known, headers: Mapping[str, str], body: bytes) -> Proof:
    """Raises `DeliveryRefused`: it is not signed as this source signs, or not lately."""
    secrets = source.secrets
    if isinstance(source.settings, SnsSettings) and not source.settings.certificates:
        secrets = (fetched_certificate(source.settings, body, source),)
    return verify(
        source.scheme, source.settings, secrets, headers, body, source.now(), source.tolerance
    )


def fetched_certificate(settings: SnsSettings, body: bytes, source: Known) -> Secret:
    """Nothing is fetched for a message that claims to be of another topic."""
    address = sns.certificate_address(sns.read_message(body, settings.topics))
    return Secret(address, certificate_at(address), valid_from=source.read_at)


def ensure_within_rate(source: Known) -> None:
    """Count an authentic delivery in this minute of the database's clock.

    In the cache `deliveries`: each process counts by itself unless the site names a shared one.
    """
    if source.per_minute is None:
        return
    second = int(source.now().timestamp())
    window, passed = divmod(second, WINDOW_SECONDS)
    key = f"romulus:deliveries:{source.id}:{window}"
    cache = caches["deliveries"]
    try:
        cache.add(key, 0, 2 * WINDOW_SECONDS)
        number = cache.incr(key)
    except Exception:  # noqa: BLE001 (each cache's client has its own errors)
        log.warning("rate.uncounted", source=source.slug)
        return
    if number > source.per_minute:
        raise TooMany(WINDOW_SECONDS - passed)


# --- what it says -----------------------------------------------------------------------------


def understood(source: Known, headers: Mapping[str, str], plain: bytes) -> tuple[Shape, Found, str]:
    """What an authentic body is; its challenge where it is one."""
    try:
        payload = read_body(plain, source.scheme)
    except NotJson as problem:
        # What stands in headers is known all the same: delivered again, it is the same event.
        found = read_event(source.rules, headers, None)
        told = f"the body cannot be read: {problem}"
        return Shape.NOT_JSON, replace(found, problem=told), ""
    if source.scheme is Scheme.AWS_SNS and payload.get("Type") in sns.CONFIRMATIONS:
        return Shape.EVENT, confirmation(payload), ""
    challenge = challenge_of(source.scheme, payload)
    if challenge is not None:
        return Shape.CHALLENGE, Found(), challenge
    found = read_event(source.rules, headers, payload)
    return (Shape.MISFIT if found.problem else Shape.EVENT), found, ""


def confirmation(message: Mapping[str, Any]) -> Found:
    """Kept for an administrator: as `rejected`, so that no wait ever gets it."""
    return Found(event_id=message["MessageId"], type=message["Type"], problem=CONFIRM)


# --- into the inbox ---------------------------------------------------------------------------


def received(incoming: Incoming, source: Known) -> Receipt:
    receipt = inbox.receive(incoming, patience=LOCK_SECONDS)
    if receipt.outcome is Outcome.REJECTED:
        count_refusal(source.id, Refusal.SHAPE, incoming.problem, source.now())
    return receipt
