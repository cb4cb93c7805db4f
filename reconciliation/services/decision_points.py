"""Asking an external decision point, once, by the address rules of providers. No answer is a no."""

from __future__ import annotations

import json
from collections.abc import Sequence
from uuid import UUID, uuid4

import structlog
from cryptography.fernet import InvalidToken
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from reconciliation.adapters.network import resolves_to_allowed
from reconciliation.adapters.wire import Exchange, Request, exchange
from reconciliation.core.addresses import REFUSED, address_problem, allowed_for, parse_address
from reconciliation.core.authzen import EVALUATIONS, PointSaid, questions, said_of
from reconciliation.core.contracts import Deadlines
from reconciliation.core.errors import InvalidProvider
from reconciliation.models import DecisionPoint
from reconciliation.sealing import seal, unseal
from reconciliation.services.audit import actor_of, add_entry
from workflows.core.boundary.requests import Request as Asked
from workflows.core.boundary.verdict import Check, Finding
from workflows.failpoints import failpoint
from workflows.services.changes import changes_of
from workflows.services.decision_points import PointAnswer

log = structlog.get_logger(__name__)


def ask_decision_point(slug: str, request: Asked) -> PointAnswer:
    """Return what the decision point says of `request`."""
    point = DecisionPoint.objects.filter(slug=slug).first()
    if point is None:
        said = f"The decision point {slug!r} is not set up here."
        return PointAnswer(Finding(Check.DECISION_POINT, False, said))
    asked = str(uuid4())
    found = asked_of(point, request, asked)
    log.info("decision_point.asked", point=slug, allowed=found.allowed, decision=found.decision_id)
    finding = Finding(Check.DECISION_POINT, found.allowed, f"{point.name}: {found.reason}.")
    return PointAnswer(finding, found.decision_id, found.answered)


def asked_of(point: DecisionPoint, request: Asked, asked: str) -> PointSaid:
    path, body = questions(request)
    number = len(body["evaluations"]) if path == EVALUATIONS else 1
    try:
        got = posted(point, path, body, asked)
    except (InvalidProvider, InvalidToken) as error:
        log.warning("decision_point.unready", point=point.slug, error=type(error).__name__)
        return PointSaid(False, "it cannot be asked as it is set up here", asked)
    return said_of(got.status if got.body is not None else None, got.document, path, number, asked)


def posted(point: DecisionPoint, path: str, body: dict[str, object], asked: str) -> Exchange:
    """One POST. Raises `InvalidProvider` or `InvalidToken`: it cannot be asked as it is set up."""
    address = parse_address(point.base_url)
    headers = {"Content-Type": "application/json", "X-Request-ID": asked}
    if point.credential_sealed:
        headers["Authorization"] = f"Bearer {unseal(point.credential_sealed).decode()}"
    request = Request("POST", address.path + path, headers, json.dumps(body).encode())
    allowed = allowed_for(point.slug, settings.ROMULUS_ALLOWED_ADDRESSES)
    return exchange(address, allowed, request, Deadlines(), point.timeout_seconds)


def problem_of(point: DecisionPoint) -> str:
    """What is wrong with its address, in words; empty when nothing is."""
    try:
        allowed = allowed_for(point.slug, settings.ROMULUS_ALLOWED_ADDRESSES)
        wrong = address_problem(point.base_url, allowed)
        if wrong:
            return wrong
        address = parse_address(point.base_url)
    except InvalidProvider as error:
        return str(error)
    return "" if resolves_to_allowed(address, allowed) else REFUSED


def save_decision_point(
    point: DecisionPoint, *, by: User, changed: Sequence[str], credential: str = ""
) -> UUID:
    """Save a decision point; a `credential` that is given is sealed and replaces the one before.

    Raises:
        InvalidProvider: its address is not one that may be called.
    """
    wrong = problem_of(point)
    if wrong:
        raise InvalidProvider(wrong)
    if credential:
        point.credential_sealed = seal(credential.encode())
    failpoint("before_policy")
    with transaction.atomic():
        changes = changes_of(point, changed, sealed={"credential"})
        point.save()
        add_entry(actor_of(by), "set up", f"decision_point:{point.slug}", {"changes": changes})
    failpoint("after_policy")
    return point.pk
