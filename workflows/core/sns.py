"""Messages of AWS SNS: who signed them, and what of them was signed.

The signature covers named fields and not the body's bytes. So nothing but those fields is looked at
further on: what anybody could have changed on the way reaches no path.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA1, SHA256, HashAlgorithm

from workflows.core.errors import DeliveryRefused
from workflows.core.json_text import NotJson, parse
from workflows.core.sources import Refusal

NOTIFICATION = "Notification"
CONFIRMATIONS = frozenset({"SubscriptionConfirmation", "UnsubscribeConfirmation"})
SIGNED = {
    NOTIFICATION: ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
    **dict.fromkeys(
        CONFIRMATIONS,
        ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"),
    ),
}
MAY_LACK = {"Subject"}
# By SignatureVersion. A topic is of version 1 unless its owner has set it to 2.
HASHES: dict[str, type[HashAlgorithm]] = {"1": SHA1, "2": SHA256}
HOST = re.compile(r"sns\.[a-z0-9-]{3,30}\.amazonaws\.com(?:\.cn)?")

Message = dict[str, Any]


def refused(note: str) -> DeliveryRefused:
    return DeliveryRefused(Refusal.SIGNATURE, note)


def read_message(body: bytes, topics: Collection[str]) -> Message:
    """The message in a body, if it claims to be of one of these topics.

    Raises:
        DeliveryRefused: it is no message of SNS, or of another topic.
    """
    try:
        message = parse(body)
    except NotJson:
        raise refused("it is no message of SNS") from None
    if not isinstance(message, dict) or message.get("Type") not in tuple(SIGNED):
        raise refused("it is no message of SNS")
    if message.get("TopicArn") not in topics:
        raise refused("its topic is none that this source takes")
    needed = (*SIGNED[message["Type"]], "Signature", "SignatureVersion")
    for name in needed:
        lacking = name not in message and name in MAY_LACK
        if not lacking and not isinstance(message.get(name), str):
            raise refused(f"it has no {name}")
    return message


def is_signed_by(message: Message, pem: str, now: datetime) -> bool:
    """Whether this certificate, valid now, has signed what SNS signs of the message."""
    certificate = read_certificate(pem)
    key = certificate.public_key()
    made_with = HASHES.get(message["SignatureVersion"])
    in_time = certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc
    if made_with is None or not in_time or not isinstance(key, RSAPublicKey):
        return False
    try:
        signature = base64.b64decode(message["Signature"], validate=True)
        # SHA-1 where the topic's owner has not asked for better; forging it takes a second
        # preimage, which nobody has.
        key.verify(signature, signed_text(message), PKCS1v15(), made_with())
    except (binascii.Error, ValueError, InvalidSignature):
        return False
    return True


def signed_text(message: Message) -> bytes:
    lines = [f"{name}\n{message[name]}\n" for name in SIGNED[message["Type"]] if name in message]
    return "".join(lines).encode(errors="surrogatepass")


def signed_at(message: Message) -> datetime:
    try:
        at = datetime.fromisoformat(message["Timestamp"])
    except ValueError:
        raise refused("the time that it was signed at is no time") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def signed_part(message: Any) -> Message:
    """What of a message was signed; a `Message` that is JSON itself stands there as what it is.

    Raises:
        NotJson: this is no message.
    """
    if not isinstance(message, dict) or message.get("Type") not in tuple(SIGNED):
        raise NotJson("it is no message of SNS")
    part = {name: message[name] for name in SIGNED[message["Type"]] if name in message}
    try:
        return part | {"Message": parse(part["Message"].encode(errors="surrogatepass"))}
    except NotJson:
        return part


# --- certificates -----------------------------------------------------------------------------


@lru_cache(maxsize=32)
def read_certificate(pem: str) -> x509.Certificate:
    """Raises `ValueError`: this is no certificate."""
    return x509.load_pem_x509_certificate(pem.encode())


def certificate_address(message: Message) -> str:
    """Where SNS says that its certificate lies, if that is AWS.

    Raises:
        DeliveryRefused: it is elsewhere; nothing is fetched from there.
    """
    address = message.get("SigningCertURL")
    try:
        parts = urlsplit(address if isinstance(address, str) else "")
        plain = parts.scheme == "https" and parts.netloc == parts.hostname
    except ValueError:
        raise refused("the address of its certificate is none") from None
    if not plain or not HOST.fullmatch(parts.netloc) or not parts.path.endswith(".pem"):
        raise refused("the address of its certificate is not one of AWS SNS")
    return f"https://{parts.netloc}{parts.path}"
