"""Requests as their senders sign them: by each one's own library where there is one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any

import stripe
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from slack_sdk.signature import SignatureVerifier
from standardwebhooks import Webhook

from workflows.core.sources import Scheme

Headers = dict[str, str]

STANDARD_SECRET = "whsec_" + base64.b64encode(b"a secret of 24 bytes 123").decode()
OTHER_STANDARD_SECRET = "whsec_" + base64.b64encode(b"another secret 24 bytes.").decode()
SECRET = "a-secret-of-the-tests-1234"
OTHER_SECRET = "another-secret-of-the-tests"
TOPIC = "arn:aws:sns:eu-west-1:123456789012:orders"
HMAC_SETTINGS = {
    "header": "X-Signature",
    "timestamp_header": "X-Signed-At",
    "algorithm": "sha512",
    "encoding": "base64",
    "prefix": "v2=",
}


def seconds(at: datetime) -> int:
    return int(at.timestamp())


def standard(secret: str, body: bytes, at: datetime, id: str = "msg_1") -> Headers:
    return {
        "webhook-id": id,
        "webhook-timestamp": str(seconds(at)),
        "webhook-signature": Webhook(secret).sign(id, at, body.decode()),
    }


def stripes(secret: str, body: bytes, at: datetime) -> Headers:
    generate: Callable[..., str] = stripe.WebhookSignature.generate_signature_header  # type: ignore[attr-defined]
    return {"stripe-signature": generate(body.decode(), secret, seconds(at))}


def slack(secret: str, body: bytes, at: datetime) -> Headers:
    time = str(seconds(at))
    signature = SignatureVerifier(secret).generate_signature(timestamp=time, body=body)
    return {"x-slack-request-timestamp": time, "x-slack-signature": signature or ""}


def github(secret: str, body: bytes, _at: datetime, id: str = "d-1") -> Headers:
    """As GitHub's documentation shows it; no library of theirs for Python signs."""
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {
        "x-hub-signature-256": f"sha256={digest}",
        "x-github-delivery": id,
        "x-github-event": "order.paid",
    }


def plain_hmac(secret: str, body: bytes, at: datetime) -> Headers:
    """As `HMAC_SETTINGS` say."""
    time = str(seconds(at))
    digest = hmac.digest(secret.encode(), f"{time}.".encode() + body, "sha512")
    return {"x-signature": "v2=" + base64.b64encode(digest).decode(), "x-signed-at": time}


def bearer(secret: str, _body: bytes, _at: datetime) -> Headers:
    return {"authorization": f"Bearer {secret}"}


SIGNERS: dict[Scheme, Callable[[str, bytes, datetime], Headers]] = {
    Scheme.STANDARD_WEBHOOKS: standard,
    Scheme.STRIPE: stripes,
    Scheme.GITHUB: github,
    Scheme.SLACK: slack,
    Scheme.HMAC: plain_hmac,
    Scheme.BEARER: bearer,
    Scheme.INTERNAL: bearer,
}
SIGNED_BODIES = [Scheme.STANDARD_WEBHOOKS, Scheme.STRIPE, Scheme.GITHUB, Scheme.SLACK, Scheme.HMAC]
TIMED = [Scheme.STANDARD_WEBHOOKS, Scheme.STRIPE, Scheme.SLACK, Scheme.HMAC]


def secret_of(scheme: Scheme, *, other: bool = False) -> str:
    if scheme is Scheme.STANDARD_WEBHOOKS:
        return OTHER_STANDARD_SECRET if other else STANDARD_SECRET
    return OTHER_SECRET if other else SECRET


# --- AWS SNS ----------------------------------------------------------------------------------


class SnsSigner:
    """Signs as AWS SNS does, with a certificate of its own."""

    def __init__(self, *, until: datetime = datetime(2100, 1, 1, tzinfo=UTC)) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sns.amazonaws.com")])
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
            .not_valid_after(until)
            .sign(self._key, hashes.SHA256())
        )
        self.pem = certificate.public_bytes(Encoding.PEM).decode()

    def message(self, text: str, at: datetime, version: str = "2", **fields: str) -> dict[str, Any]:
        stamp = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        message = {
            "Type": "Notification",
            "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
            "TopicArn": TOPIC,
            "Message": text,
            "Timestamp": stamp,
            "SignatureVersion": version,
            "SigningCertURL": "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem",
        } | fields
        return message | {"Signature": self.signature(message)}

    def signature(self, message: dict[str, Any]) -> str:
        """Over the documented fields in the documented order, each with its name before it."""
        if message["Type"] == "Notification":
            names = ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"]
        else:
            names = ["Message", "MessageId", "SubscribeURL", "Timestamp", "Token"]
            names += ["TopicArn", "Type"]
        text = "".join(f"{name}\n{message[name]}\n" for name in names if name in message)
        made = hashes.SHA1() if message["SignatureVersion"] == "1" else hashes.SHA256()  # noqa: S303
        return base64.b64encode(self._key.sign(text.encode(), padding.PKCS1v15(), made)).decode()

    def body(self, text: str, at: datetime, version: str = "2", **fields: str) -> bytes:
        return json.dumps(self.message(text, at, version, **fields)).encode()


@cache
def sns_signer() -> SnsSigner:
    """One for all tests: keys take a while to make."""
    return SnsSigner()
