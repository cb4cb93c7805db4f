"""What a `write` step returns: one intended external effect, described and not yet sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any


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
    """

    action: str
    target: str
    parameters: Mapping[str, Any]
    summary: str
    effect: str = "default"
    amount: Decimal | None = None
    currency: str = ""
