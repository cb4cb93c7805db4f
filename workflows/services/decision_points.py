"""External decision points, which a policy may name: what one says of a request.

The app that speaks to them registers itself when it is ready; this app never imports it. Asking is
a call over the network, so it is never done inside a transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from workflows.core.boundary.requests import Request
from workflows.core.boundary.verdict import Check, Finding
from workflows.models import PolicyVersion


@dataclass(frozen=True, slots=True)
class PointAnswer:
    """What a decision point said.

    Attributes:
        finding: no answer is a no.
        decision_id: of its decision, else that of our request.
        answered: it is its own answer, and not the want of one.
    """

    finding: Finding
    decision_id: str = ""
    answered: bool = False


Ask = Callable[[str, Request], PointAnswer]
_registered: list[Ask] = []


def register_decision_points(ask: Ask) -> None:
    _registered[:] = [ask]


def ask_point(version: PolicyVersion | None, request: Request) -> PointAnswer | None:
    """What the decision point that the policy names says of `request`; None: it names none."""
    slug = version.policy.document.decision_point if version else ""
    if not slug:
        return None
    for ask in _registered:
        return ask(slug, request)
    return PointAnswer(Finding(Check.DECISION_POINT, False, "No decision point can be asked here."))
