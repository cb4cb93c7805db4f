"""Where executors elsewhere ask the boundary: the OpenID AuthZEN Authorization API 1.0.

`POST /access/v1/evaluation` and `/access/v1/evaluations`, with a bearer token. No session, no page.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from workflows.core.boundary.authzen import batch_of
from workflows.core.errors import UsageError
from workflows.core.json_text import NotJson
from workflows.core.words import is_storable
from workflows.models import Tenant
from workflows.services.access_tokens import tenant_of_token
from workflows.services.served_boundary import evaluated, evaluated_all
from workflows.views.bearing import NotTaken, bearer_of, json_of, refused

REQUEST_ID = "X-Request-ID"
LONGEST_ID = 200


@csrf_exempt
@require_POST
def evaluation(request: HttpRequest) -> HttpResponse:
    return answered(request, evaluated)


@csrf_exempt
@require_POST
def evaluations(request: HttpRequest) -> HttpResponse:
    """Several at once; without a list it is the same as one."""
    return answered(request, one_or_all)


def one_or_all(document: Any, tenant: Tenant) -> dict[str, Any]:
    batch = batch_of(document)
    if batch is None:
        return evaluated(document, tenant)
    return {"evaluations": evaluated_all(batch, tenant)}


def answered(request: HttpRequest, ask: Callable[[Any, Tenant], dict[str, Any]]) -> HttpResponse:
    """Let in whoever has a token, read the body within its limit, and answer."""
    tenant = tenant_of_token(bearer_of(request))
    if tenant is None:
        said = refused("a valid bearer token is needed", HTTPStatus.UNAUTHORIZED)
        return traced(request, said)
    try:
        answer = JsonResponse(ask(json_of(request), tenant))
    except NotTaken as error:
        answer = refused(str(error), error.status)
    except (NotJson, UsageError) as error:
        answer = refused(str(error), HTTPStatus.BAD_REQUEST)
    return traced(request, answer)


def traced(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Give the sender's own ID of the request back."""
    asked = request.headers.get(REQUEST_ID, "")
    if asked and is_storable(asked, LONGEST_ID) and asked.isprintable():
        response.headers[REQUEST_ID] = asked
    return response


@require_safe
def configuration(request: HttpRequest) -> HttpResponse:
    """What the specification has a decision point say of itself."""
    here = request.build_absolute_uri("/").rstrip("/")
    return JsonResponse(
        {
            "policy_decision_point": here,
            "access_evaluation_endpoint": here + reverse("access_evaluation"),
            "access_evaluations_endpoint": here + reverse("access_evaluations"),
        }
    )
