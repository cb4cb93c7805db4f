"""Letters posted by HTTP: to a webhook, signed by Standard Webhooks, and to Slack or its like.

An address that somebody typed in is called as a provider's is: public ones alone, but for what
`ROMULUS_ALLOWED_ADDRESSES` names for `notifications`; checked for the very address that is
connected to, without redirects.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from datetime import datetime, timedelta
from http import HTTPStatus

from reconciliation.adapters.wire import Exchange, Request, exchange
from reconciliation.core.addresses import Allowed, parse_address
from reconciliation.core.channels import TAKEN, Outcome
from reconciliation.core.contracts import Deadlines
from reconciliation.core.errors import InvalidProvider
from reconciliation.core.letters import Letter, as_json, as_slack
from workflows.core.signatures import standard_key

SECONDS = 10.0
LIMITS = Deadlines()
# The key of `ROMULUS_ALLOWED_ADDRESSES` that these addresses go by.
ALLOWED_AS = "notifications"
# What says that nothing will ever be taken there: Standard Webhooks has 410; Slack answers 404
# for a webhook that was removed, and 403 for one that is not allowed any more.
GONE = {HTTPStatus.GONE}
SLACK_GONE = {HTTPStatus.GONE, HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN}


def post_webhook(
    address: str, secret: str, allowed: tuple[Allowed, ...], letter: Letter, now: datetime
) -> Outcome:
    """Post `letter` once. `secret` is one of Standard Webhooks, `whsec_…`; raises nothing."""
    body = as_json(letter)
    headers = signed_headers(secret, str(letter.id), now, body)
    return posted(address, allowed, headers, body, GONE)


def post_slack(address: str, allowed: tuple[Allowed, ...], letter: Letter) -> Outcome:
    """Post `letter` once; its ID goes along, for whoever looks into it."""
    headers = {"Romulus-Message-Id": str(letter.id)}
    return posted(address, allowed, headers, as_slack(letter), SLACK_GONE)


def signed_headers(secret: str, id: str, now: datetime, body: bytes) -> dict[str, str]:
    """The headers of Standard Webhooks 1.0 (standardwebhooks.com), with its symmetric signature."""
    at = str(int(now.timestamp()))
    key = standard_key(secret)
    assert key, "a webhook is saved with a secret that can be read"
    digest = hmac.digest(key, f"{id}.{at}.".encode() + body, "sha256")
    signature = base64.b64encode(digest).decode()
    return {"webhook-id": id, "webhook-timestamp": at, "webhook-signature": f"v1,{signature}"}


def posted(
    address: str,
    allowed: tuple[Allowed, ...],
    headers: Mapping[str, str],
    body: bytes,
    gone: set[HTTPStatus],
) -> Outcome:
    try:
        target = parse_address(address)
    except InvalidProvider as error:
        return Outcome(f"It needs {error}.", lasting=True)
    whole = {"Content-Type": "application/json", "User-Agent": "Romulus", **headers}
    request = Request("POST", target.path or "/", whole, body)
    got = exchange(target, allowed, request, LIMITS, SECONDS)
    return outcome_of(got, gone)


def outcome_of(got: Exchange, gone: set[HTTPStatus]) -> Outcome:
    """Nothing that the other side wrote is kept: it may be anything."""
    if got.status is None:
        return Outcome(f"It did not answer: {got.problem}.")
    if HTTPStatus.OK <= got.status < HTTPStatus.MULTIPLE_CHOICES:
        return TAKEN
    said = f"It answered {got.status}."
    return Outcome(said, lasting=got.status in gone, retry_after=retry_after(got))


def retry_after(got: Exchange) -> timedelta | None:
    """Seconds alone; a date would need the other side's clock."""
    text = got.header("retry-after")
    return timedelta(seconds=int(text)) if text.isdecimal() and len(text) < 7 else None  # noqa: PLR2004
