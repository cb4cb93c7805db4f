"""What the addresses for programs share: a bearer token, a JSON body within its limit, JSON back.

No session, no page. What is refused says why, and holds nothing of what was sent.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, JsonResponse

from workflows.core.json_text import parse

MAX_BYTES = 256 * 1024
CHALLENGE = {"WWW-Authenticate": "Bearer"}


class NotTaken(Exception):
    """The request is not taken as it is: `status` and the message say why."""

    def __init__(self, message: str, status: HTTPStatus) -> None:
        super().__init__(message)
        self.status = status


def bearer_of(request: HttpRequest) -> str:
    """The token that is shown; empty for none."""
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" else ""


def json_of(request: HttpRequest) -> Any:
    """The body.

    Raises:
        NotTaken: it is of another kind, or too large.
        NotJson: it is no JSON that means one thing.
    """
    if request.content_type != "application/json":
        raise NotTaken("application/json is needed", HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    body = request.read(MAX_BYTES + 1)
    if len(body) > MAX_BYTES:
        said = f"{MAX_BYTES:,} bytes at most"
        raise NotTaken(said, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return parse(body)


def refused(message: str, status: HTTPStatus) -> JsonResponse:
    headers = CHALLENGE if status == HTTPStatus.UNAUTHORIZED else None
    return JsonResponse({"error": message}, status=status, headers=headers)
