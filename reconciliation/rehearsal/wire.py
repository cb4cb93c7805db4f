"""What comes and goes over HTTP: a request as it was read, an answer, and how the answer leaves.

Pure values; imports nothing of Romulus.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal
from urllib.parse import parse_qsl

Closing = Literal["fin", "rst"]

ACCOUNT = re.compile(r"acct_[A-Za-z0-9_-]{1,64}")
STRIPE_V1, STRIPE_V2 = "stripe-v1", "stripe-v2"
PERSONALITIES = ("keyed", "lookup", "blind", STRIPE_V1, STRIPE_V2)
# Where in a body an operation is named; a provider's adapter has a name of its own for it.
MARKERS = ("metadata.operation", "metadata.romulus_operation")
MAX_FORM_FIELDS = 200
FORM_NAME = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)")


@dataclass(frozen=True)
class Answer:
    """A whole HTTP answer; the server adds the headers that every answer has."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"
    # False for what a proxy in front says: it knows nothing of the destination's request ids.
    own: bool = True


@dataclass(frozen=True)
class Delivery:
    """How an answer leaves: late, whole, cut in half, or not at all with the connection closed."""

    answer: Answer | None
    after_seconds: float = 0.0
    truncated: bool = False
    # With no answer, how the connection ends; with one, None keeps it open.
    close: Closing | None = None

    @property
    def answered(self) -> str:
        """What the journal says of the answer: `whole`, `truncated` or `none`."""
        if self.answer is None:
            return "none"
        return "truncated" if self.truncated else "whole"


class Refused(Exception):
    """The request is answered with an error and nothing was done for it."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


@dataclass(frozen=True)
class Request:
    """A request as it arrived; `unreadable` is the refusal of one whose body could not be taken."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes
    unreadable: Answer | None = None
    id: str = field(default_factory=lambda: f"req_{secrets.token_hex(12)}")

    @property
    def personality(self) -> str | None:
        """The personality that the first path segment names, if it names one."""
        first = self.path.strip("/").partition("/")[0]
        return first if first in PERSONALITIES else None

    @property
    def account(self) -> str | None:
        """The account of a well-formed bearer token; anything else is not an account."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        token = token.strip()
        return token if scheme.lower() == "bearer" and ACCOUNT.fullmatch(token) else None

    @property
    def attempt(self) -> str | None:
        """The transmission that the sender says this is."""
        return self.headers.get("romulus-attempt")

    @property
    def key(self) -> str | None:
        """The idempotency key as sent; an empty one counts as none."""
        return self.headers.get("idempotency-key") or None

    @cached_property
    def document(self) -> object:
        """The body as JSON or as a form, or `None` when it is neither, in UTF-8."""
        if "form-urlencoded" in self.headers.get("content-type", "") and self.is_stripes:
            return formed(self.body)
        return parsed(self.body)

    @property
    def is_stripes(self) -> bool:
        """Whether it is spoken to as to Stripe: in forms."""
        return self.personality in (STRIPE_V1, STRIPE_V2)

    @property
    def marker(self) -> str | None:
        """The operation in the body's metadata: what a look-up can find the resource by."""
        values = [at_path(self.document, path) for path in MARKERS]
        return next((value for value in values if isinstance(value, str)), None)

    @cached_property
    def operations(self) -> list[str]:
        """Every operation that the request names: in its header, its metadata, its query."""
        named = [self.headers.get("romulus-operation"), self.marker]
        return [name for name in [*named, *self.query.get("operation", [])] if name]


def parsed(body: bytes) -> object:
    """Return the JSON value in `body`, or `None` when there is none that can be stored again."""
    try:
        document = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
        # A lone surrogate parses, and can be neither stored nor sent again.
        json.dumps(document, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):
        return None
    return document


def formed(body: bytes) -> object:
    """Return the value of a form whose names nest by brackets, or `None` when there is none."""
    try:
        pairs = parse_qsl(
            body.decode("utf-8"), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS
        )
    except ValueError:
        return None
    document: dict[str, Any] = {}
    for name, value in pairs:
        named = FORM_NAME.fullmatch(name)
        if named is None:
            return None
        within = document
        first, *rest = [named[1], *re.findall(r"\[([^\]]*)\]", named[2])]
        for part in rest:
            inner = within.setdefault(first, {})
            if not isinstance(inner, dict):
                return None
            # An empty pair of brackets is the next place of a list.
            within, first = inner, part or str(len(inner))
        within[first] = value
    return document


def _refuse_constant(name: str) -> object:
    message = f"{name} is not JSON"
    raise ValueError(message)


def at_path(document: object, dotted: str) -> object:
    """Return the value at a dotted path of objects, or `None`."""
    for name in dotted.split("."):
        if not isinstance(document, dict):
            return None
        document = document.get(name)
    return document


def as_json(document: object) -> bytes:
    """Return `document` as the bytes that are sent."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def success(status: int, document: object, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
    """Return a JSON answer."""
    return Answer(status, as_json(document), headers)


def failure(
    status: int,
    kind: str,
    message: str,
    *,
    headers: tuple[tuple[str, str], ...] = (),
    **details: object,
) -> Answer:
    """Return a typed error answer; `details` are `code`, `param`, `known`, left out when `None`."""
    given = {name: value for name, value in details.items() if value is not None}
    return success(status, {"error": {"type": kind, **given, "message": message}}, headers)


def invalid(message: str, *, param: str | None = None, known: object = None) -> Refused:
    """Return the refusal of a request that asks for something impossible."""
    return Refused(failure(400, "invalid_request_error", message, param=param, known=known))


def instant(seconds: float) -> str:
    """Return a time of the destination's clock as text."""
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
    return text.replace("+00:00", "Z")
