"""What Stripe documents about a request that comes again, for the two APIs that it has.

    v1  A key is kept for 24 hours with whatever its execution was answered, an error too; while it
        executes: 409. What was refused before (401, 429, most 400) is not kept.
    v2  A key is kept for 30 days. A success is not repeated; a failed request is executed again,
        and its answer is another.

After its time a key is forgotten, and the same request makes a second effect. Pure.
"""

from __future__ import annotations

from reconciliation.rehearsal.personalities import Call
from reconciliation.rehearsal.wire import Answer, at_path, failure

DAY_SECONDS = 86_400.0
RETENTION_SECONDS = {"stripe-v1": DAY_SECONDS, "stripe-v2": 30 * DAY_SECONDS}
# Paying by this card is declined, as in Stripe's own test mode.
DECLINED = "pm_card_chargeDeclined"


def declined(call: Call) -> Answer | None:
    """The answer to a payment that is declined: the execution began, and moved no money."""
    if not call.collection.stripes or at_path(call.members, "payment_method") != DECLINED:
        return None
    return failure(402, "card_error", "Your card was declined.", code="card_declined")


def key_in_use() -> Answer:
    message = "a request with this key is still executing"
    again = (("Stripe-Should-Retry", "true"),)
    kind, code = "invalid_request_error", "idempotency_key_in_use"
    return failure(409, kind, message, code=code, headers=again)


def key_reused() -> Answer:
    message = "Keys for idempotent requests can only be used with the same parameters."
    return failure(400, "idempotency_error", message)
