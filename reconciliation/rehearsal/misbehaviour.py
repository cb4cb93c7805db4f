"""What each fault looks like on the wire and in a record. Pure: values in, values out."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from reconciliation.rehearsal.personalities import Call, Collection, new_resource
from reconciliation.rehearsal.plans import Fault, Plan
from reconciliation.rehearsal.wire import (
    Answer,
    Closing,
    Delivery,
    Request,
    failure,
    invalid,
)

OTHER_ACCOUNT = "acct_elsewhere"
OTHER_ZONE = "elsewhere-1a"
OTHER_OPERATION = "operation-of-somebody-else"

# The error type that belongs to a status, where the fault does not say which.
ERROR_TYPES = {
    401: "authentication_error",
    402: "card_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    429: "rate_limit_error",
}
FIRST_SERVER_ERROR = 500

PROXY_PAGE = (
    b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n"
    b"<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n"
)


def before(plan: Plan, request: Request) -> Delivery | None:
    """Return how a request ends that a fault keeps from having any effect, or `None`."""
    for fault in plan.faults:
        if fault.name in BEFORE:
            return BEFORE[fault.name](fault, request)
        if fault.name == "proxy_502" and not fault.flag("applied"):
            return Delivery(_proxy_page())
    return None


def after(plan: Plan, answer: Answer) -> Delivery:
    """Return how `answer` leaves once the destination has done what it was asked."""
    for fault in plan.faults:
        if fault.name in AFTER:
            return AFTER[fault.name](fault, answer)
    return Delivery(answer)


def kept_answer(plan: Plan, call: Call, answer: Answer, delivery: Delivery) -> Answer:
    """Return what the destination keeps under the key: its own answer, whatever became of it.

    What a proxy or the network did is not known to it. An error that it gave itself is, and is
    kept by those who keep errors; the others have the work's result for whoever comes again.
    """
    fault = plan.get("error_after") if call.collection.saves_errors else None
    if fault and fault.flag("stored") and delivery.answer is not None:
        return delivery.answer
    return answer


def receipt(plan: Plan, call: Call, resource: dict[str, Any]) -> dict[str, Any]:
    """Return the resource as the answer tells of it; raises `Refused` for an unknown member."""
    fault = plan.get("mismatched_receipt")
    if fault is None:
        return resource
    name = fault.text("field") or call.collection.told_wrong
    told = copy.deepcopy(resource)
    if name == "operation":
        told["metadata"] = {**told["metadata"], "operation": OTHER_OPERATION}
        return told
    if name not in told:
        message = f"a {call.collection.kind} has no member {name!r} to tell wrongly"
        raise invalid(message, param="field", known=[*resource, "operation"])
    told[name] = _another(told[name])
    return told


def looked_up(plan: Plan, call: Call, records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what a look-up gives for the records that it honestly found."""
    fault = plan.get("lookup_wrong_scope")
    if fault is None:
        return list(records)
    # Where nothing was found there is still a stranger's record: that is the point of the fault.
    strangers = list(records) or [_invented(call)]
    return [_elsewhere(fault, call.collection, record) for record in strangers]


def _dropped(fault: Fault, _: object) -> Delivery:
    return Delivery(None, close=_closing(fault))


def _hung_up(fault: Fault, _: object) -> Delivery:
    return Delivery(None, after_seconds=fault.number("seconds") or 0, close=_closing(fault))


def _failed_before(fault: Fault, _: object) -> Delivery:
    return Delivery(_error(fault, "as rehearsed, before any effect"))


def _failed_after(fault: Fault, _: object) -> Delivery:
    return Delivery(_error(fault, "as rehearsed, after the effect"))


def _redirected(fault: Fault, request: Request) -> Delivery:
    elsewhere = ("Location", f"/elsewhere{request.path}")
    return Delivery(Answer(int(fault.number("status") or 0), b"", (elsewhere,)))


def _unavailable(fault: Fault, _: object) -> Delivery:
    message = "look-up is unavailable, as rehearsed"
    return Delivery(failure(503, "api_error", message, headers=_retry_after(fault)))


def _delayed(fault: Fault, answer: Answer) -> Delivery:
    return Delivery(answer, after_seconds=fault.number("seconds") or 0)


def _truncated(_: Fault, answer: Answer) -> Delivery:
    return Delivery(answer, truncated=True, close="fin")


def _hidden_by_proxy(_: Fault, __: object) -> Delivery:
    return Delivery(_proxy_page())


BEFORE: Mapping[str, Callable[[Fault, Request], Delivery]] = {
    "drop_before": _dropped,
    "never_apply": _hung_up,
    "error_before": _failed_before,
    "redirect": _redirected,
    "lookup_unavailable": _unavailable,
}
AFTER: Mapping[str, Callable[[Fault, Answer], Delivery]] = {
    "apply_then_drop": _dropped,
    "apply_then_delay": _delayed,
    "truncated_body": _truncated,
    "proxy_502": _hidden_by_proxy,
    "error_after": _failed_after,
}


def _invented(call: Call) -> dict[str, Any]:
    members = dict.fromkeys(call.collection.required, "unknown")
    metadata = {"operation": call.marker} if call.marker else {}
    like = Call(call.request, call.collection, call.account, {**members, "metadata": metadata})
    record = new_resource(like, status=None, created_at="2001-01-01T00:00:00.000000Z")
    return {**record, "id": call.resource_id or record["id"]}


def _elsewhere(fault: Fault, collection: Collection, record: dict[str, Any]) -> dict[str, Any]:
    if fault.text("scope") == "zone" and "zone" in collection.required:
        return {**record, "zone": OTHER_ZONE}
    return {**record, "account": OTHER_ACCOUNT}


def _another(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return value + 1
    if isinstance(value, dict):
        return {**value, "other": secrets.token_hex(4)}
    return f"{value}-other"


def _error(fault: Fault, message: str) -> Answer:
    status = int(fault.number("status") or 0)
    usual = "api_error" if status >= FIRST_SERVER_ERROR else "invalid_request_error"
    kind = fault.text("type") or ERROR_TYPES.get(status, usual)
    return failure(status, kind, message, code=fault.text("code"), headers=_retry_after(fault))


def _retry_after(fault: Fault) -> tuple[tuple[str, str], ...]:
    seconds = fault.number("retry_after")
    return () if seconds is None else (("Retry-After", f"{seconds:.0f}"),)


def _proxy_page() -> Answer:
    return Answer(502, PROXY_PAGE, (), "text/html", own=False)


def _closing(fault: Fault) -> Closing:
    return "rst" if fault.text("close") == "rst" else "fin"
