"""Stripe, as two providers: what its API v1 and its API v2 promise about a key is not the same.

Spoken to over plain HTTP and without Stripe's client, so that what is sent again is byte for byte
what was sent, under our key, once. Which API it is shows in the path; an action of the other one is
refused where it is set up.
"""

from __future__ import annotations

from typing import Any, ClassVar

from reconciliation.adapters.declared import ActionSettings
from reconciliation.adapters.http import HttpAdapter

MARKER = "metadata.romulus_operation"


class Stripe(HttpAdapter):
    """What both have in common.

    Attributes:
        family: of the contracts that speak of this API.
    """

    family: ClassVar[str]
    namespace: ClassVar[str]

    def check(self) -> list[str]:
        problems = super().check()
        if not self.contract.slug.startswith(self.family):
            problems.append(
                f"the contract {self.contract.slug} is not of this API: one of {self.family}"
            )
        return problems

    def action_problems(self, action: ActionSettings) -> list[str]:
        problems = super().action_problems(action)
        if not action.path.startswith(self.namespace):
            problems.append(f"its path is {action.path}, and this adapter calls {self.namespace}")
        return problems


class StripeV1(Stripe):
    """Forms, keys on POST for 24 hours, lists that show a new object at once."""

    family = "stripe-v1"
    namespace = "/v1/"
    defaults = {
        "encoding": "form",
        "marker": MARKER,
        "record": {"operation": MARKER},
    }

    def completed(self, action: dict[str, Any]) -> dict[str, Any]:
        """An action on a collection is looked up in its list, from shortly before it was made."""
        path = str(action.get("path", ""))
        if "look_up" not in action and "{" not in path:
            first = f"{path}?limit=100&created[gte]={{since}}"
            pages = {
                "path": f"{first}&starting_after={{last}}",
                "more": "has_more",
                "last": "data[-1].id",
            }
            action = {**action, "look_up": {"path": first, "items": "data", "pages": pages}}
        return super().completed(action)


class StripeV2(Stripe):
    """JSON, keys on POST and DELETE for 30 days, a failed first try driven on by its repeat."""

    family = "stripe-v2"
    namespace = "/v2/"
    defaults = {
        "encoding": "json",
        "marker": MARKER,
        "record": {"operation": MARKER},
    }
