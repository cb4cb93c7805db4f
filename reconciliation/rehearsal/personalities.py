"""The destinations that live here: what each takes, what it makes, where it is found.

    keyed      honours an idempotency key     refunds, credits     POST and GET
    lookup     no key; found by its marker    machines             POST and GET
    blind      neither key nor look-up        comments             POST only
    stripe-v1  as Stripe documents its API    payment intents,     POST and GET
    stripe-v2  v1 and v2: see `stripe`        outbound payments    POST and GET

Pure: from a request to a `Call` or a `Refused`; nothing is stored or done here.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reconciliation.rehearsal.wire import (
    STRIPE_V1,
    STRIPE_V2,
    Refused,
    Request,
    failure,
    invalid,
)

MAX_AMOUNT = 99_999_999
MAX_TEXT = 65_536
MAX_KEY = 255
MAX_METADATA = 50
MAX_METADATA_VALUE = 500
# What the destination itself says of a resource cannot be said by a client.
RESERVED = frozenset({"id", "object", "status", "account", "created_at", "ticket"})

# Returns what a value must be, when it is not.
Check = Callable[[object], str | None]


def _text(value: object) -> str | None:
    if isinstance(value, str) and 0 < len(value) <= MAX_TEXT:
        return None
    return f"text of 1 to {MAX_TEXT} characters"


def _amount(value: object) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_AMOUNT:
        return None
    return f"a whole number from 1 to {MAX_AMOUNT}"


def _currency(value: object) -> str | None:
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z]{3}", value):
        return None
    return "a currency of three letters"


def _money(value: object) -> str | None:
    if (
        isinstance(value, dict)
        and _amount(value.get("value")) is None
        and _currency(value.get("currency")) is None
    ):
        return None
    return "an object of a value and a currency"


@dataclass(frozen=True)
class Collection:
    """One kind of resource: who keeps it, how it is named, what a client must give."""

    personality: str
    kind: str
    prefix: str
    status: str
    required: Mapping[str, Check]
    # The member that a mismatched receipt gets wrong when the fault does not say which.
    told_wrong: str
    readable: bool = True
    stripes: bool = False

    @property
    def heeds_keys(self) -> bool:
        """Whether a key means something here."""
        return self.personality == "keyed" or self.stripes

    @property
    def saves_errors(self) -> bool:
        """Whether an error that the execution gave is kept under its key, as a result is."""
        return self.personality != STRIPE_V2


_MONEY: Mapping[str, Check] = {"amount": _amount, "currency": _currency, "order": _text}

COLLECTIONS: Mapping[str, Collection] = {
    "/keyed/v1/refunds": Collection("keyed", "refund", "re", "succeeded", _MONEY, "amount"),
    "/keyed/v1/credits": Collection("keyed", "credit", "cr", "succeeded", _MONEY, "amount"),
    "/lookup/v1/machines": Collection(
        "lookup", "machine", "m", "running", {"name": _text, "size": _text, "zone": _text}, "name"
    ),
    "/stripe-v1/v1/payment_intents": Collection(
        STRIPE_V1,
        "payment_intent",
        "pi",
        "succeeded",
        {"amount": _amount, "currency": _currency},
        "amount",
        stripes=True,
    ),
    "/stripe-v2/v2/money_management/outbound_payments": Collection(
        STRIPE_V2,
        "v2.money_management.outbound_payment",
        "obp",
        "processing",
        {"amount": _money},
        "amount",
        stripes=True,
    ),
}
COMMENTS = Collection("blind", "comment", "c", "posted", {"body": _text}, "ticket", readable=False)
COMMENTS_PATH = re.compile(r"/blind/v1/tickets/([A-Za-z0-9_-]{1,64})/comments")


@dataclass(frozen=True)
class Call:
    """A request that is understood and allowed: a creation, or a read of one or of a list."""

    request: Request
    collection: Collection
    account: str
    # The members that the new resource takes from the request; empty for a read.
    members: Mapping[str, Any]
    resource_id: str | None = None
    marker: str | None = None
    # A page of a list begins after this resource.
    after: str | None = None

    @property
    def reads(self) -> bool:
        """Whether it asks, rather than creates."""
        return self.request.method == "GET"


def understood(request: Request) -> Call:
    """Return the call that `request` makes; raises `Refused` (401, 404, 405, 400)."""
    if request.personality is None:
        message = f"the first part of {request.path} is no personality"
        raise _not_found(message)
    if request.account is None:
        message = "give `Authorization: Bearer acct_…`"
        raise Refused(failure(401, "authentication_error", message))
    collection, inherent, resource_id = _located(request.path)
    _check_method(request.method, collection, resource_id)
    if request.method == "GET":
        if collection.stripes:
            after = request.query.get("starting_after", [None])[0]
            return Call(request, collection, request.account, {}, resource_id, after=after)
        marker = None if resource_id else _marker_asked(request)
        return Call(request, collection, request.account, {}, resource_id, marker)
    if collection.heeds_keys and (request.key or not collection.stripes):
        _check_key(request.key)
    members = {**inherent, **_members(_spoken(request, collection), collection)}
    return Call(request, collection, request.account, members)


def new_resource(call: Call, *, status: str | None, created_at: str) -> dict[str, Any]:
    """Return the resource that a creation makes."""
    collection = call.collection
    if collection.stripes:
        return {
            "id": f"{collection.prefix}_{secrets.token_hex(12)}",
            "object": collection.kind,
            "livemode": False,
            "status": status or collection.status,
            "created": created(created_at, collection),
            **call.members,
        }
    return {
        "id": f"{collection.prefix}_{secrets.token_hex(12)}",
        "object": collection.kind,
        "status": status or collection.status,
        **call.members,
        "account": call.account,
        "created_at": created_at,
    }


def created(at: str, collection: Collection) -> int | str:
    """A time as the API writes it: v1 in seconds, v2 as text."""
    if collection.personality == STRIPE_V2:
        return at
    return int(datetime.fromisoformat(at).timestamp())


def _spoken(request: Request, collection: Collection) -> object:
    """The body, in which a form's amounts are numbers again."""
    document = request.document
    if collection.personality == STRIPE_V1 and isinstance(document, dict):
        amount = document.get("amount")
        if isinstance(amount, str) and amount.isascii() and amount.isdecimal():
            return {**document, "amount": int(amount[:12])}
    return document


def _located(path: str) -> tuple[Collection, dict[str, str], str | None]:
    """Return the collection at a path, the members that the path itself gives, the id named."""
    if comments := COMMENTS_PATH.fullmatch(path):
        return COMMENTS, {"ticket": comments[1]}, None
    if path in COLLECTIONS:
        return COLLECTIONS[path], {}, None
    parent, _, resource_id = path.rpartition("/")
    if parent in COLLECTIONS and resource_id:
        return COLLECTIONS[parent], {}, resource_id
    message = f"nothing at {path}"
    raise _not_found(message)


def _check_method(method: str, collection: Collection, resource_id: str | None) -> None:
    if method == "GET" and not collection.readable:
        message = f"{collection.kind}s cannot be read"
        raise _not_found(message)
    allowed = "GET" if resource_id else "GET, POST" if collection.readable else "POST"
    if method not in allowed.split(", "):
        message = f"{method} is not possible here"
        answer = failure(405, "invalid_request_error", message, headers=(("Allow", allowed),))
        raise Refused(answer)


def _check_key(key: str | None) -> None:
    if key is None:
        message = "a creation needs an Idempotency-Key"
        raise Refused(failure(400, "invalid_request_error", message, code="missing_key"))
    if len(key) > MAX_KEY:
        message = f"the Idempotency-Key is longer than {MAX_KEY} characters"
        raise Refused(failure(400, "invalid_request_error", message, code="key_too_long"))


def _marker_asked(request: Request) -> str | None:
    unknown = set(request.query) - {"operation"}
    if unknown:
        message = f"there is no filter {min(unknown)!r}"
        raise invalid(message, param=min(unknown), known=["operation"])
    values = request.query.get("operation", [])
    if len(values) > 1 or values == [""]:
        message = "give one operation"
        raise invalid(message, param="operation")
    return values[0] if values else None


def _members(document: object, collection: Collection) -> dict[str, Any]:
    if not isinstance(document, dict):
        message = "the body must be a JSON object in UTF-8"
        raise invalid(message, param="body")
    for name, check in collection.required.items():
        if (must_be := check(document.get(name))) is not None:
            message = f"{name} must be {must_be}"
            raise invalid(message, param=name)
    if taken := RESERVED & set(document):
        message = f"{min(taken)} is the destination's to say"
        raise invalid(message, param=min(taken))
    return {**document, "metadata": _metadata(document.get("metadata", {}))}


def _metadata(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or len(value) > MAX_METADATA:
        message = f"metadata must be an object of at most {MAX_METADATA} members"
        raise invalid(message, param="metadata")
    for name, text in value.items():
        if not isinstance(text, str) or len(text) > MAX_METADATA_VALUE:
            message = f"metadata.{name} must be text of at most {MAX_METADATA_VALUE} characters"
            raise invalid(message, param=f"metadata.{name}")
    return value


def _not_found(message: str) -> Refused:
    return Refused(failure(404, "not_found_error", message))
