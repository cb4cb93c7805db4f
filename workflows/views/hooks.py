"""Where sources deliver their events: `POST /hooks/<source>/`. No session, no login, no page."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import structlog
from django.db import Error
from django.http import HttpRequest, HttpResponseNotAllowed, JsonResponse
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from workflows.core.errors import BodyBroken, DeliveryRefused
from workflows.core.events import Outcome
from workflows.core.sources import Refusal
from workflows.services.ingress import (
    Delivery,
    NoSuchSource,
    Shape,
    Taken,
    TooMany,
    take_delivery,
)
from workflows.services.known_sources import SourceUnready
from workflows.services.sns_certificates import CertificateAway

log = structlog.get_logger(__name__)

AGAIN_SECONDS = 5
UNSIGNED = "it is not signed as this source signs, or not lately"
STATUS = {
    Refusal.SIGNATURE: HTTPStatus.UNAUTHORIZED,
    Refusal.STALE: HTTPStatus.UNAUTHORIZED,
    Refusal.SIZE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    Refusal.ENCODING: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    Refusal.CONTENT_TYPE: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    Refusal.RATE: HTTPStatus.TOO_MANY_REQUESTS,
}


@csrf_exempt
def hook(request: HttpRequest, source: str) -> HttpResponseBase:
    """Take a delivery; the answer is small JSON, and 2xx only after the commit."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    try:
        return answered(take_delivery(source, delivery_of(request)))
    except NoSuchSource:
        return refused(HTTPStatus.NOT_FOUND, "there is no such source")
    except TooMany as refusal:
        return refused(HTTPStatus.TOO_MANY_REQUESTS, str(refusal), again=refusal.again)
    except BodyBroken as refusal:
        return refused(HTTPStatus.BAD_REQUEST, str(refusal))
    except DeliveryRefused as refusal:
        reason = Refusal(refusal.reason)
        # Who cannot sign is not told what was wrong with the signature; operators are.
        unsigned = reason in (Refusal.SIGNATURE, Refusal.STALE)
        return refused(STATUS[reason], UNSIGNED if unsigned else str(refusal))
    except (SourceUnready, CertificateAway):
        return refused(
            HTTPStatus.SERVICE_UNAVAILABLE, "this cannot be judged now", again=AGAIN_SECONDS
        )
    except Error as error:
        log.warning("event.not_stored", source=source, error=type(error).__name__)
        return refused(
            HTTPStatus.SERVICE_UNAVAILABLE, "this cannot be stored now", again=AGAIN_SECONDS
        )


def answered(taken: Taken) -> JsonResponse:
    if taken.shape is Shape.CHALLENGE:
        return JsonResponse({"challenge": taken.challenge})
    assert taken.receipt is not None, "what is no challenge is kept"
    told: dict[str, Any] = {
        "event": str(taken.receipt.event),
        "outcome": str(taken.receipt.outcome),
    }
    if taken.shape is Shape.EVENT:
        is_new = taken.receipt.outcome is not Outcome.DUPLICATE
        return JsonResponse(told, status=HTTPStatus.ACCEPTED if is_new else HTTPStatus.OK)
    is_json = taken.shape is Shape.MISFIT
    status = HTTPStatus.UNPROCESSABLE_ENTITY if is_json else HTTPStatus.BAD_REQUEST
    return JsonResponse(told | {"error": taken.problem}, status=status)


def refused(status: HTTPStatus, why: str, again: int | None = None) -> JsonResponse:
    headers = {} if again is None else {"Retry-After": str(again)}
    return JsonResponse({"error": why}, status=status, headers=headers)


# --- the request ------------------------------------------------------------------------------


def delivery_of(request: HttpRequest) -> Delivery:
    headers = {name.lower(): value for name, value in request.headers.items()}
    length, read = body_of(request)
    return Delivery(headers, length, readable(read))


def body_of(request: HttpRequest) -> tuple[int | None, Callable[[int], bytes]]:
    """Its declared length, and how it is read: Django gives nothing of what comes in chunks, so
    that is read from the server, if it says that it ends it."""
    if request.META.get("wsgi.input_terminated") and not request.META.get("CONTENT_LENGTH"):
        return None, request.META["wsgi.input"].read
    try:
        return int(request.META.get("CONTENT_LENGTH") or 0), request.read
    except ValueError:
        return 0, request.read


def readable(read: Callable[[int], bytes]) -> Callable[[int], bytes]:
    def piece(size: int) -> bytes:
        try:
            return read(size)
        except Exception:  # noqa: BLE001 (each server has its own errors for a body that is cut)
            raise BodyBroken(Refusal.ENCODING, "it cannot be read") from None

    return piece
