"""The boundary's answer: allow or deny, each of its checks, and who could change a no."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self


class Check(StrEnum):
    """What is looked at, in the order in which people are told of it."""

    SUBJECT = "subject"
    TOOL = "tool"
    PARAMETERS = "parameters"
    GRANT = "grant"
    PROPOSAL = "proposal"  # somebody was asked at all
    ACTION = "action"  # what is sent is what was approved
    USED = "used"
    EXPIRY = "expiry"
    WITHDRAWN = "withdrawn"
    SELF_APPROVAL = "self_approval"
    APPROVER = "approver"
    APPROVALS = "approvals"
    PRECONDITION = "precondition"
    DECISION_POINT = "decision_point"


RENEWED_BY_APPROVAL = frozenset(
    {Check.EXPIRY, Check.WITHDRAWN, Check.SELF_APPROVAL, Check.APPROVER, Check.APPROVALS}
)

# What is not there yet when it is proposed.
TO_COME = RENEWED_BY_APPROVAL | {Check.PROPOSAL}

HELPS: dict[Check, str] = {
    Check.SUBJECT: "An administrator who lets it act again, or a grant in the policy.",
    Check.TOOL: "Whoever keeps the policy: the action must be one of its tools.",
    Check.PARAMETERS: "A new proposal whose parameters fit the tool.",
    Check.GRANT: "Whoever keeps the policy, by a grant; or a new proposal within the limits.",
    Check.PROPOSAL: "A workflow that proposes it first: an approval step, named in approved_by=.",
    Check.ACTION: "A new proposal: an approval counts for exactly what was shown.",
    Check.USED: "A new proposal: an approval counts once.",
    Check.PRECONDITION: "Someone who knows why it changed; then a new proposal.",
    Check.DECISION_POINT: "Whoever keeps the external decision point.",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One check and what it found, in a sentence."""

    check: Check
    passed: bool
    said: str

    def as_json(self) -> dict[str, Any]:
        return {"check": str(self.check), "passed": self.passed, "said": self.said}

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Self:
        return cls(Check(plain["check"]), plain["passed"], plain["said"])


@dataclass(frozen=True)
class Verdict:
    """Allowed when every check passed.

    Attributes:
        policy: the version that was asked, "northwind, 3"; empty: none is set up.
        renewers: who may approve it again, in words.
        decision_id: of the external decision point, where it was asked.
    """

    findings: tuple[Finding, ...] = ()
    policy: str = ""
    renewers: str = ""
    decision_id: str = ""

    @property
    def allowed(self) -> bool:
        return self.failed is None

    @property
    def failed(self) -> Finding | None:
        """The first check that did not pass."""
        return next((each for each in self.findings if not each.passed), None)

    @property
    def check(self) -> str:
        return str(self.failed.check) if self.failed else ""

    @property
    def reason(self) -> str:
        """Why, for people: what failed, or what let it pass."""
        if self.failed is not None:
            return self.failed.said
        return self.findings[-1].said if self.findings else "No policy is set up here."

    @property
    def helps(self) -> str:
        """What would change a no, and who can do it; empty for a yes."""
        if self.failed is None:
            return ""
        if self.failed.check in RENEWED_BY_APPROVAL:
            return f"Approving the same action again: {self.renewers}."
        return HELPS[self.failed.check]

    @property
    def renewable(self) -> bool:
        """Whether approving the same action again would be enough."""
        failed = [each.check for each in self.findings if not each.passed]
        return bool(failed) and all(check in RENEWED_BY_APPROVAL for check in failed)

    def before_approval(self) -> Verdict:
        """The same, as far as it counts before anybody was asked."""
        kept = tuple(each for each in self.findings if each.check not in TO_COME)
        return Verdict(kept, self.policy, self.renewers, self.decision_id)

    def also(self, *findings: Finding, decision_id: str = "") -> Verdict:
        """The same, with what was looked at elsewhere."""
        all_of_them = (*self.findings, *findings)
        given = decision_id or self.decision_id
        return Verdict(all_of_them, self.policy, self.renewers, given)
