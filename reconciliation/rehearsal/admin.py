"""The administration under `/_admin/`: arming faults, settings, and the truth about effects.

Admin calls are not journalled: the journal is about the clients of the personalities.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from reconciliation.rehearsal import arming, effects, faults, journal, plans
from reconciliation.rehearsal.faults import BadFault
from reconciliation.rehearsal.plans import Match, Plan
from reconciliation.rehearsal.store import Store
from reconciliation.rehearsal.wire import (
    PERSONALITIES,
    Answer,
    Refused,
    Request,
    failure,
    invalid,
    success,
)

PREFIX = "/_admin/"
MATCHED = ("personality", "operation", "path", "method", "account")
METHODS = ("GET", "POST")
DEFAULT_PAGE, LONGEST_PAGE = 200, 1000
MOST_TIMES = 1_000_000
# A longer number may not fit a row id of the store.
ROW_ID_DIGITS = 18

Handler = Callable[[Store, Request], Answer]


def answered(store: Store, request: Request, release: Callable[[], None]) -> Answer:
    """Answer one admin call; `release` ends the delays that are under way."""
    own: Mapping[str, Handler] = {"POST": partial(_release, release)}
    routes = {**ROUTES, "release": own}
    handlers = routes.get(request.path.removeprefix(PREFIX).rstrip("/"))
    if handlers is None:
        known = [PREFIX + path for path in routes]
        return failure(404, "not_found_error", f"nothing at {request.path}", known=known)
    handler = handlers.get(request.method)
    if handler is None:
        message = f"{request.method} is not possible here"
        allow = (("Allow", ", ".join(handlers)),)
        return failure(405, "invalid_request_error", message, headers=allow)
    try:
        return request.unreadable or handler(store, request)
    except BadFault as bad:
        return invalid(bad.message, param=bad.param, known=bad.known).answer
    except Refused as refusal:
        return refusal.answer


def _health(store: Store, _: Request) -> Answer:
    with store.reading() as connection:
        connection.execute("SELECT 1")
    return success(200, {"ok": True})


def _arm(store: Store, request: Request) -> Answer:
    given = dict(_object(request))
    name = _text(given.pop("fault", None), "fault")
    times = _times(given.pop("times", 1))
    match = _match(given)
    # What is left are the fault's own parameters; `plans` refuses what it does not know.
    plan = plans.parse(name, given)
    _check_fit(plan, match)
    return success(201, arming.arm(store, plan, match, times))


def _match(given: dict[str, Any]) -> Match:
    """Take the members of the match out of `given`."""
    named = {name: _text(given.pop(name), name) for name in MATCHED if name in given}
    body = given.pop("body", {})
    if not isinstance(body, dict):
        message = "body must be an object from dotted names to values"
        raise invalid(message, param="body")
    if "order" in given:
        body = {**body, "order": given.pop("order")}
    if named.get("personality") not in (None, *PERSONALITIES):
        message = f"there is no personality {named['personality']!r}"
        raise invalid(message, param="personality", known=PERSONALITIES)
    if named.get("method") not in (None, *METHODS):
        message = f"no fault happens to {named['method']!r}"
        raise invalid(message, param="method", known=METHODS)
    return Match(body=body, **named)


def _check_fit(plan: Plan, match: Match) -> None:
    misfit = plan.misfit(method=match.method_of(plan), personality=match.personality)
    if misfit is not None:
        raise invalid(misfit, param="fault")


def _armed(store: Store, _: Request) -> Answer:
    return success(200, {"data": arming.armed(store), "known": faults.catalogue()})


def _clear(store: Store, _: Request) -> Answer:
    return success(200, {"cleared": arming.clear(store)})


def _effects(store: Store, request: Request) -> Answer:
    query = _query(request, "operation", "personality", "account")
    found = effects.everything(
        store,
        operation=query.get("operation"),
        personality=query.get("personality"),
        account=query.get("account"),
    )
    return success(200, {"data": found})


def _journal(store: Store, request: Request) -> Answer:
    query = _query(request, "operation", "after", "limit")
    after = _whole(query.get("after", "0"), "after", math.inf)
    limit = _whole(query.get("limit", str(DEFAULT_PAGE)), "limit", LONGEST_PAGE)
    operation = query.get("operation")
    page = journal.entries(store, operation=operation, after=after, limit=max(limit, 1))
    return success(200, page)


def _change_settings(store: Store, request: Request) -> Answer:
    given = dict(_object(request))
    personality = _text(given.pop("personality", None), "personality")
    if personality not in PERSONALITIES:
        message = f"there is no personality {personality!r}"
        raise invalid(message, param="personality", known=PERSONALITIES)
    for name, value in given.items():
        if name not in arming.DEFAULTS:
            message = f"there is no setting {name!r}"
            raise invalid(message, param=name, known=list(arming.DEFAULTS))
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            message = f"{name} must be a number of seconds, 0 or more"
            raise invalid(message, param=name)
    arming.change_settings(store, personality, given)
    return success(200, arming.settings(store))


def _settings(store: Store, _: Request) -> Answer:
    return success(200, arming.settings(store))


def _reset(store: Store, _: Request) -> Answer:
    store.reset()
    return success(200, {"ok": True})


def _release(release: Callable[[], None], *_: object) -> Answer:
    release()
    return success(200, {"ok": True})


ROUTES: Mapping[str, Mapping[str, Handler]] = {
    "health": {"GET": _health},
    "faults": {"GET": _armed, "POST": _arm, "DELETE": _clear},
    "effects": {"GET": _effects},
    "journal": {"GET": _journal},
    "settings": {"GET": _settings, "POST": _change_settings},
    "reset": {"POST": _reset},
}


def _object(request: Request) -> dict[str, Any]:
    if not isinstance(request.document, dict):
        message = "the body must be a JSON object in UTF-8"
        raise invalid(message, param="body")
    return request.document


def _query(request: Request, *known: str) -> dict[str, str]:
    unknown = set(request.query) - set(known)
    if unknown:
        message = f"there is no parameter {min(unknown)!r}"
        raise invalid(message, param=min(unknown), known=known)
    return {name: values[0] for name, values in request.query.items()}


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value:
        message = f"{name} must be text"
        raise invalid(message, param=name)
    return value


def _times(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MOST_TIMES:
        message = f"times must be a whole number from 1 to {MOST_TIMES}, or null: until cleared"
        raise invalid(message, param="times")
    return value


def _whole(text: str, name: str, most: float) -> int:
    if not text.isdecimal() or len(text) > ROW_ID_DIGITS or int(text) > most:
        message = f"{name} must be a whole number"
        raise invalid(message, param=name)
    return int(text)
