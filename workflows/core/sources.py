"""The schemes by which a source proves who it is, and why a delivery is refused."""

from __future__ import annotations

from enum import StrEnum


class Scheme(StrEnum):
    STANDARD_WEBHOOKS = "standard_webhooks"
    STRIPE = "stripe"
    GITHUB = "github"
    SLACK = "slack"
    AWS_SNS = "aws_sns"
    HMAC = "hmac"  # a plain HMAC of the body in a named header
    BEARER = "bearer"  # a token in the Authorization header
    INTERNAL = "internal"  # sent from inside: by command, by a person, by a run

    @property
    def label(self) -> str:
        return LABELS[self]


LABELS = {
    Scheme.STANDARD_WEBHOOKS: "Standard Webhooks",
    Scheme.STRIPE: "Stripe",
    Scheme.GITHUB: "GitHub",
    Scheme.SLACK: "Slack",
    Scheme.AWS_SNS: "AWS SNS",
    Scheme.HMAC: "HMAC in a header",
    Scheme.BEARER: "Bearer token",
    Scheme.INTERNAL: "Internal",
}


class Refusal(StrEnum):
    """Why a delivery was not taken; of these only `shape` leaves a row, state `rejected`."""

    SIGNATURE = "signature"  # missing, wrong, or by a secret that counts no more
    STALE = "stale"  # signed too long ago, or in the future
    SIZE = "size"
    ENCODING = "encoding"  # of the body: unknown, not allowed, or broken
    CONTENT_TYPE = "content_type"
    RATE = "rate"
    SHAPE = "shape"  # no JSON, no ID, or not as its schema says
    DISABLED = "disabled"
