"""The OpenID AuthZEN Authorization API 1.0 as it is served: what is asked, and how it is answered.

Pure. Several evaluations at once take what they leave out from the top of the request.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any

from workflows.core.boundary.requests import Request
from workflows.core.boundary.subjects import Subject
from workflows.core.errors import UsageError
from workflows.core.json_text import exact_text
from workflows.core.words import is_storable

MOST = 100  # evaluations of one request
LONGEST_TEXT = 1000
PLAIN_AMOUNT = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
INHERITED = ("subject", "action", "resource", "context")


class Semantic(StrEnum):
    """How several evaluations are gone through."""

    EXECUTE_ALL = "execute_all"
    DENY_ON_FIRST_DENY = "deny_on_first_deny"
    PERMIT_ON_FIRST_PERMIT = "permit_on_first_permit"

    def ends(self, allowed: bool) -> bool:
        """Whether nothing is answered after this one."""
        match self:
            case Semantic.DENY_ON_FIRST_DENY:
                return not allowed
            case Semantic.PERMIT_ON_FIRST_PERMIT:
                return allowed
            case _:
                return False


@dataclass(frozen=True, slots=True)
class Batch:
    evaluations: tuple[dict[str, Any], ...]
    semantic: Semantic


def batch_of(document: Any) -> Batch | None:
    """The evaluations that a request asks for; None where it asks for one, as the single one does.

    Raises:
        UsageError: says what is wrong with it.
    """
    whole = as_object(document, "the request")
    listed = whole.get("evaluations")
    if listed is None or listed == []:
        return None
    if not isinstance(listed, list) or len(listed) > MOST:
        raise UsageError(f"evaluations: a list of {MOST} at most")
    common = {name: whole[name] for name in INHERITED if name in whole}
    options = as_object(whole.get("options", {}), "options")
    word = options.get("evaluations_semantic", Semantic.EXECUTE_ALL)
    if word not in list(Semantic):
        raise UsageError(f"options.evaluations_semantic: one of {', '.join(Semantic)}")
    each = tuple(common | as_object(one, f"evaluations[{n}]") for n, one in enumerate(listed))
    return Batch(each, Semantic(word))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What one evaluation names: of whoever asks, the subject; what of it acts for whom."""

    subject: Subject
    on_behalf_of: Subject | None
    action: str
    target: str
    parameters: dict[str, Any]
    amount: Decimal | None
    currency: str

    def request(self, tenant: str, active: bool, groups: frozenset[str]) -> Request:
        return Request(
            subject=self.subject,
            action=self.action,
            tenant=tenant,
            parameters=self.parameters,
            target=self.target,
            amount=self.amount,
            currency=self.currency,
            on_behalf_of=self.on_behalf_of,
            groups=groups,
            active=active,
        )


def evaluation_of(document: Any) -> Evaluation:
    """Read one evaluation.

    Raises:
        UsageError: names what is missing or of another form.
    """
    whole = as_object(document, "the request")
    subject, action, resource = (
        as_object(whole.get(name), name) for name in ("subject", "action", "resource")
    )
    as_object(whole.get("context", {}), "context")
    said = as_object(subject.get("properties", {}), "subject.properties")
    given = as_object(resource.get("properties", {}), "resource.properties")
    text_of(resource, "type", "resource")
    return Evaluation(
        subject=Subject.of(text_of(subject, "type", "subject"), text_of(subject, "id", "subject")),
        on_behalf_of=behalf_in(said),
        action=text_of(action, "name", "action"),
        target=text_of(resource, "id", "resource"),
        parameters=as_object(given.get("parameters", {}), "resource.properties.parameters"),
        amount=amount_in(given.get("amount")),
        currency=text_of(given, "currency", "resource.properties") if "currency" in given else "",
    )


def behalf_in(said: dict[str, Any]) -> Subject | None:
    if "on_behalf_of" not in said:
        return None
    return Subject.of("person", text_of(said, "on_behalf_of", "subject.properties"))


def as_object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{name}: an object is needed")
    return value


def text_of(value: dict[str, Any], name: str, where: str) -> str:
    text = value.get(name)
    if not isinstance(text, str) or not text or not is_storable(text, LONGEST_TEXT):
        raise UsageError(f"{where}.{name}: a text of 1 to {LONGEST_TEXT:,} characters is needed")
    return text


def amount_in(value: Any) -> Decimal | None:
    """The amount, to its last digit: a number is the digits that were written."""
    if value is None:
        return None
    text = exact_text(value)
    try:
        amount = Decimal(text) if text and PLAIN_AMOUNT.fullmatch(text) else None
    except InvalidOperation:
        amount = None
    if amount is None or not amount.is_finite():
        raise UsageError("resource.properties.amount: a number is needed")
    return amount
