"""How the review queue is looked at: the whole of it lies in the address and comes back from there.

What an address holds was typed by anybody: a value that is none counts as not given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import TypeVar

from reconciliation.core.facts import HOLD_SENTENCES, HoldReason


class Tab(StrEnum):
    MINE = "mine"  # assigned to me
    TEAM = "team"  # in queues that I own or may decide
    ALL = "all"  # whatever I may see


class View(StrEnum):
    UNKNOWN = "unknown"
    CLOSING = "closing"
    OVERDUE = "overdue"
    UNASSIGNED = "unassigned"
    ASKED = "asked"  # somebody asked me, and it is not answered
    REMINDED = "reminded"  # I wanted to hear of it again, and now is the time
    SNOOZED = "snoozed"
    SECOND = "second"  # somebody has proposed, and another person must confirm


class Sort(StrEnum):
    DUE = "due"
    AMOUNT = "amount"  # the largest first; numbers are compared, whatever their currency
    WINDOW = "window"  # the one whose protection ends first
    AGE = "age"  # the one that is held longest


# In these, a snoozed case is shown all the same: what is overdue is never out of sight.
SHOW_SNOOZED = frozenset({View.OVERDUE, View.ASKED, View.REMINDED, View.SNOOZED, View.SECOND})

# Nobody knows whether it took effect; where only the result cannot be checked, it is known.
UNKNOWN_REASONS = frozenset(
    reason
    for reason, sentence in HOLD_SENTENCES.items()
    if sentence.unknown and reason is not HoldReason.NOT_VERIFIABLE
)

AGES: Mapping[str, timedelta] = {
    "1h": timedelta(hours=1),
    "4h": timedelta(hours=4),
    "1d": timedelta(days=1),
    "3d": timedelta(days=3),
    "7d": timedelta(days=7),
}
ME, NOBODY = "me", "nobody"

SLUG = re.compile(r"[\w-]{1,60}", re.ASCII)
ASSIGNEE = re.compile(rf"{ME}|{NOBODY}|[0-9]{{1,9}}", re.ASCII)
MOST_DIGITS = 16  # as many as an amount of the ledger has before its point


@dataclass(frozen=True, slots=True)
class Looked:
    """One way to look at the queue; an empty field takes any.

    Attributes:
        queue, provider, tenant: by slug.
        reason: why it is held, as holds name it.
        assignee: `me`, `nobody` or the ID of a person.
        age: held for at least so long, a key of `AGES`.
        amount: of at least so much, a number.
    """

    tab: Tab = Tab.ALL
    view: View | None = None
    queue: str = ""
    provider: str = ""
    tenant: str = ""
    reason: str = ""
    assignee: str = ""
    age: str = ""
    amount: str = ""
    sort: Sort = Sort.DUE

    @property
    def hides_snoozed(self) -> bool:
        """Only one's own default lists leave out what was snoozed; the whole queue never does."""
        return self.tab is not Tab.ALL and self.view not in SHOW_SNOOZED

    @property
    def filtered(self) -> bool:
        return any(getattr(self, name) for name in FILTERS)

    def query(self) -> dict[str, str]:
        """What an address says of it; nothing where it is as by itself."""
        return {
            each.name: str(value)
            for each in fields(self)
            if (value := getattr(self, each.name)) != each.default
        }

    def but(self, **changes: object) -> Looked:
        return replace(self, **changes)  # type: ignore[arg-type]


FILTERS = ("queue", "provider", "tenant", "reason", "assignee", "age", "amount")


def looked_at(query: Mapping[str, str]) -> Looked:
    """Read an address."""

    def given(name: str, shape: re.Pattern[str]) -> str:
        text = query.get(name, "")
        return text if shape.fullmatch(text) else ""

    return Looked(
        tab=one_of(Tab, query.get("tab")) or Tab.ALL,
        view=one_of(View, query.get("view")),
        queue=given("queue", SLUG),
        provider=given("provider", SLUG),
        tenant=given("tenant", SLUG),
        reason=given("reason", SLUG),
        assignee=given("assignee", ASSIGNEE),
        age=age if (age := query.get("age", "")) in AGES else "",
        amount=amount_of(query.get("amount", "")),
        sort=one_of(Sort, query.get("sort")) or Sort.DUE,
    )


Kind = TypeVar("Kind", Tab, View, Sort)


def one_of(kind: type[Kind], text: str | None) -> Kind | None:
    return kind(text) if text in set(kind) else None


def amount_of(text: str) -> str:
    """A positive number as people type it, "1,000" or "1000.50"; empty for none."""
    try:
        number = Decimal(text.replace(",", "").strip())
    except InvalidOperation:
        return ""
    fits = number.is_finite() and number > 0 and number.adjusted() < MOST_DIGITS
    return f"{number.normalize():f}" if fits else ""
