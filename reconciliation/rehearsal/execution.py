"""What the destination does with a request for a personality, from journal to delivery.

The order is the promise: arrival is durable first, then the fault decides, then the effect, the key
and the outcome become durable in one transaction, and only then does the answer leave.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from reconciliation.rehearsal import (
    arming,
    effects,
    journal,
    keys,
    misbehaviour,
    plans,
    stripe,
)
from reconciliation.rehearsal.faults import BadFault
from reconciliation.rehearsal.journal import Done, Entry, Forgotten
from reconciliation.rehearsal.keys import KeysInFlight, StoredKey
from reconciliation.rehearsal.personalities import Call, new_resource, understood
from reconciliation.rehearsal.plans import Plan
from reconciliation.rehearsal.store import Store
from reconciliation.rehearsal.wire import (
    Answer,
    Delivery,
    Refused,
    Request,
    failure,
    instant,
    invalid,
    success,
)

# Waits so many seconds, or raises `Stopping`.
Pause = Callable[[float], None]


class Stopping(Exception):
    """The destination is ending: what has not been applied yet will not be."""


class Execution:
    """Executes requests against the store; one for the whole process, safe in threads."""

    def __init__(self, store: Store, pause: Pause) -> None:
        self._store = store
        self._pause = pause
        self._keys = KeysInFlight()

    def deliver(self, request: Request) -> Delivery:
        """Do what `request` asks and return how its answer leaves."""
        entry, misfit = self._arrive(request)
        try:
            return self._outcome(entry, request, misfit)
        except Forgotten:
            return Delivery(None, close="fin")

    def _outcome(self, entry: Entry, request: Request, misfit: Refused | None) -> Delivery:
        try:
            if misfit is not None:
                raise misfit
            return self._respond(entry, request)
        except Refused as refusal:
            return self._concluded(entry, "nothing", Delivery(refusal.answer))
        except Stopping:
            return self._concluded(entry, "nothing", Delivery(None, close="fin"))

    def _arrive(self, request: Request) -> tuple[Entry, Refused | None]:
        """Journal the request; a header fault that cannot be is refused only after that."""
        asked, misfit = None, None
        try:
            asked = _asked_by_header(request)
        except BadFault as bad:
            asked = plans.NO_FAULT
            misfit = invalid(bad.message, param=bad.param, known=bad.known)
        return journal.arrive(self._store, request, asked), misfit

    def _respond(self, entry: Entry, request: Request) -> Delivery:
        ended = misbehaviour.before(entry.plan, request)
        if ended is not None:
            return self._concluded(entry, "nothing", ended)
        if request.unreadable is not None:
            raise Refused(request.unreadable)
        call = understood(request)
        if call.reads:
            return self._read(entry, call)
        if call.collection.heeds_keys and call.request.key:
            return self._write_under_key(entry, call)
        if (no := stripe.declined(call)) is not None:
            return self._concluded(entry, "nothing", misbehaviour.after(entry.plan, no))
        return self._apply(entry, call)

    def _read(self, entry: Entry, call: Call) -> Delivery:
        self._wait(entry.plan)
        lag = arming.setting(self._store, call.collection.personality, "visibility_lag_seconds")
        if fault := entry.plan.get("lookup_lag"):
            lag = fault.number("seconds") or 0
        filtered = entry.plan.get("lookup_ignores_filter") is None
        honest, more = effects.found(self._store, call, younger_than=lag, filtered=filtered)
        records = misbehaviour.looked_up(entry.plan, call, honest)
        delivery = misbehaviour.after(entry.plan, _read_answer(call, records, more))
        return self._concluded(entry, "read", delivery)

    def _write_under_key(self, entry: Entry, call: Call) -> Delivery:
        key = call.request.key or ""
        if entry.plan.get("key_in_flight"):
            raise Refused(_key_in_use(call))
        if entry.plan.get("key_pruned"):
            keys.forget(self._store, call.account, key)
        if entry.plan.get("apply_twice"):
            # What was first answered under the key stays, for the requests that do honour it.
            return self._apply(entry, call, keep=self._stored(call, key) is None)
        if (known := self._stored(call, key)) is not None:
            return self._replay(entry, call, known)
        with self._keys.hold(call.account, key) as free:
            if not free:
                raise Refused(_key_in_use(call))
            # The request that held the key may have ended since it was looked for.
            if (known := self._stored(call, key)) is not None:
                return self._replay(entry, call, known)
            if (no := stripe.declined(call)) is not None:
                return self._declined(entry, call, no)
            return self._apply(entry, call, keep=True)

    def _declined(self, entry: Entry, call: Call, answer: Answer) -> Delivery:
        """Refuse from within the execution: kept under the key where errors are."""
        self._wait(entry.plan)
        delivery = misbehaviour.after(entry.plan, answer)
        with self._store.transaction() as connection:
            if call.collection.saves_errors:
                keys.keep(connection, entry, call, answer, self._ahead(call))
            journal.conclude(connection, entry, "nothing", delivery)
        return delivery

    def _ahead(self, call: Call) -> float:
        return arming.setting(self._store, call.collection.personality, "clock_ahead_seconds")

    def _stored(self, call: Call, key: str) -> StoredKey | None:
        retention = arming.setting(self._store, call.collection.personality, "retention_seconds")
        return keys.stored(self._store, call.account, key, retention - self._ahead(call))

    def _replay(self, entry: Entry, call: Call, known: StoredKey) -> Delivery:
        if known.fingerprint != keys.fingerprint(call):
            raise Refused(_key_reused(call))
        self._wait(entry.plan)
        delivery = misbehaviour.after(entry.plan, known.answer)
        return self._concluded(entry, "replay", delivery)

    def _apply(self, entry: Entry, call: Call, *, keep: bool = False) -> Delivery:
        """Make the effect, durable together with the key and the journal's word on it."""
        self._wait(entry.plan)
        now = time.time()
        status, recovers_at = _ending(entry.plan, now)
        resource = new_resource(call, status=status, created_at=instant(now))
        answer = success(201, misbehaviour.receipt(entry.plan, call, resource))
        delivery = misbehaviour.after(entry.plan, answer)
        with self._store.transaction() as connection:
            effect = effects.add(connection, entry, call, resource, recovers_at)
            if keep:
                kept = misbehaviour.kept_answer(entry.plan, call, answer, delivery)
                keys.keep(connection, entry, call, kept, self._ahead(call))
            journal.conclude(connection, entry, "effect", delivery, effect)
        return delivery

    def _wait(self, plan: Plan) -> None:
        if fault := plan.get("slow"):
            self._pause(fault.number("seconds") or 0)

    def _concluded(self, entry: Entry, done: Done, delivery: Delivery) -> Delivery:
        with self._store.transaction() as connection:
            journal.conclude(connection, entry, done, delivery)
        return delivery


def _asked_by_header(request: Request) -> Plan | None:
    text = request.headers.get("rehearsal-fault")
    # A client that follows a redirect carries the header along to where nothing is rehearsed.
    if text is None or request.personality is None:
        return None
    plan = plans.parse(text)
    misfit = plan.misfit(method=request.method, personality=request.personality)
    if misfit is not None:
        raise BadFault(misfit, "Rehearsal-Fault")
    return plan


def _ending(plan: Plan, now: float) -> tuple[str | None, float | None]:
    """Return the status that the effect ends in when it is not the good one, and until when."""
    fault = plan.get("postcondition")
    if fault is None:
        return None, None
    seconds = fault.number("seconds")
    return fault.text("status"), None if seconds is None else now + seconds


def _read_answer(call: Call, records: list[dict[str, Any]], more: bool) -> Answer:
    if call.resource_id is None:
        return success(200, {"object": "list", "data": records, "has_more": more})
    if records:
        return success(200, records[0])
    message = f"no {call.collection.kind} {call.resource_id}"
    return failure(404, "invalid_request_error", message, code="resource_missing", param="id")


def _key_reused(call: Call) -> Answer:
    if call.collection.stripes:
        return stripe.key_reused()
    message = "the key was used with other parameters or at another endpoint"
    return failure(400, "idempotency_error", message, code="key_reused")


def _key_in_use(call: Call) -> Answer:
    if call.collection.stripes:
        return stripe.key_in_use()
    message = "a request with this key is still executing"
    return failure(409, "idempotency_error", message, code="key_in_use")
