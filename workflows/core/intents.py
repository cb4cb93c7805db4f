"""What a `write` step returns: one intended external effect, described and not yet sent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from workflows.core.errors import UsageError
from workflows.core.values import ensure_plain
from workflows.core.words import is_storable

# The lengths of their columns.
LONGEST = {"action": 100, "target": 300, "summary": 300, "effect": 100}
CURRENCY = re.compile(r"([A-Z]{3})?")
LARGEST_AMOUNT = Decimal(10) ** 16


@dataclass(frozen=True)
class Intent:
    """One intended effect on another system.

    Attributes:
        action: the provider's action, such as "refunds.create".
        target: what it acts on, in the words of the people who own it, such as "order ORD-7001".
        parameters: what is sent; must be storable JSON.
        summary: one line for people, such as "Refund USD 125.00 to order ORD-7001".
        effect: tells two intended effects of one step apart; one step, one effect by default.
        amount: what is at stake, where money is.
        currency: three letters, with `amount`.
        precondition: what must still be true just before the send, as the provider's settings
            say how to read it: by JMESPath in the answer, the value that must be there.
    """

    action: str
    target: str
    parameters: Mapping[str, Any]
    summary: str
    effect: str = "default"
    amount: Decimal | None = None
    currency: str = ""
    precondition: Mapping[str, Any] = field(default_factory=dict)


def check_intent(intent: Intent) -> None:
    """Raise `UsageError`, naming the field, for an intent that cannot be kept as it is."""
    for name, limit in LONGEST.items():
        text = getattr(intent, name)
        if not isinstance(text, str) or not text or not is_storable(text, limit):
            raise UsageError(f"intent: {name}: plain text of 1 to {limit} characters")
    if not CURRENCY.fullmatch(intent.currency):
        raise UsageError(f"intent: currency: three capital letters, not {intent.currency!r}")
    amount = intent.amount
    if amount is not None and not (amount.is_finite() and abs(amount) < LARGEST_AMOUNT):
        raise UsageError("intent: amount: a number below 10^16")
    ensure_plain(dict(intent.parameters), f"parameters of {intent.action}")
    ensure_plain(dict(intent.precondition), f"precondition of {intent.action}")
