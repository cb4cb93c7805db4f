"""What the boundary is asked: who wants to do what, and which approvals are there for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Self

from workflows.core.boundary.subjects import Subject


@dataclass(frozen=True)
class Request:
    """One action that somebody wants to take now.

    Attributes:
        subject: who acts; its `groups` are those of a person.
        active: the subject is known and switched on, as far as it is known here at all.
        tenant: slug.
        on_behalf_of: the person for whom an agent acts; recorded, and may not approve it.
        parameters: everything that is sent.
        amount, currency: what is at stake, where money is.
    """

    subject: Subject
    action: str
    tenant: str
    parameters: dict[str, Any] = field(default_factory=dict)
    target: str = ""
    amount: Decimal | None = None
    currency: str = ""
    on_behalf_of: Subject | None = None
    groups: frozenset[str] = frozenset()
    active: bool = True

    def as_json(self) -> dict[str, Any]:
        """Plain JSON, from which `from_json` makes the same request again."""
        return {
            "subject": str(self.subject),
            "action": self.action,
            "tenant": self.tenant,
            "parameters": self.parameters,
            "target": self.target,
            "amount": None if self.amount is None else str(self.amount),
            "currency": self.currency,
            "on_behalf_of": str(self.on_behalf_of) if self.on_behalf_of else None,
            "groups": sorted(self.groups),
            "active": self.active,
        }

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Self:
        behalf, amount = plain["on_behalf_of"], plain["amount"]
        return cls(
            **plain
            | {
                "subject": Subject.parse(plain["subject"]),
                "amount": None if amount is None else Decimal(amount),
                "on_behalf_of": Subject.parse(behalf) if behalf else None,
                "groups": frozenset(plain["groups"]),
            }
        )


@dataclass(frozen=True)
class Given:
    """One approval, as it counts now.

    Attributes:
        by: who gave it: a person, or the source of events in whose system it was given.
        groups: of the person, now.
        lacks: why this one may not approve it now, in words; empty: entitled.
        withdrawn: taken back since.
        fits: it was given for this very action, tenant, run and step.
    """

    by: Subject
    at: datetime
    groups: frozenset[str] = frozenset()
    lacks: str = ""
    withdrawn: bool = False
    fits: bool = True

    def as_json(self) -> dict[str, Any]:
        return {
            "by": str(self.by),
            "at": self.at.isoformat(),
            "groups": sorted(self.groups),
            "lacks": self.lacks,
            "withdrawn": self.withdrawn,
            "fits": self.fits,
        }

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Self:
        return cls(
            **plain
            | {
                "by": Subject.parse(plain["by"]),
                "at": datetime.fromisoformat(plain["at"]),
                "groups": frozenset(plain["groups"]),
            }
        )


@dataclass(frozen=True)
class Approvals:
    """What was approved, and by whom.

    Attributes:
        changed: what of the action is otherwise than what was proposed: names; empty: the same.
        expires_at: by the database's clock; from then on it counts no more.
        used: another operation has used it.
        proposers: who asked for it or for whom it was asked; none of them may approve it.
        closed: how it ended, where it ended without an approval.
    """

    expires_at: datetime
    given: tuple[Given, ...] = ()
    changed: tuple[str, ...] = ()
    used: bool = False
    proposers: frozenset[Subject] = frozenset()
    closed: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "expires_at": self.expires_at.isoformat(),
            "given": [each.as_json() for each in self.given],
            "changed": list(self.changed),
            "used": self.used,
            "proposers": sorted(map(str, self.proposers)),
            "closed": self.closed,
        }

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Self:
        return cls(
            **plain
            | {
                "expires_at": datetime.fromisoformat(plain["expires_at"]),
                "given": tuple(map(Given.from_json, plain["given"])),
                "changed": tuple(plain["changed"]),
                "proposers": frozenset(map(Subject.parse, plain["proposers"])),
            }
        )
