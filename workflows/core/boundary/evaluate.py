"""May this be done now? From request, policy, approvals and the time to a verdict. Pure.

Every check is made and told, also after one has failed: the record shows each of them. What no
tool and no grant covers is denied, unless the policy says otherwise of actions that are no tools.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from jsonschema.validators import Draft202012Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

from workflows.core.boundary.canonical import equal
from workflows.core.boundary.policy import (
    ANY,
    GROUP,
    ApprovalRule,
    Document,
    Grant,
    Limit,
    Policy,
    Tool,
    covers,
    is_open,
)
from workflows.core.boundary.requests import Approvals, Given, Request
from workflows.core.boundary.subjects import Subject, SubjectType, is_among
from workflows.core.boundary.verdict import Check, Finding, Verdict

MISSING = object()
PLAIN_NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")
ANYONE = "anybody who may approve for the tenant and has not proposed it"


def evaluate(
    request: Request, policy: Policy | None, approvals: Approvals | None, now: datetime
) -> Verdict:
    """Return whether `request` may be carried out at `now`, and every check that says so.

    Args:
        policy: the one in force; None: none is set up, and what asks for no approval is allowed.
        approvals: None when the action was never proposed to anybody.
        now: the database's time.
    """
    findings: list[Finding] = []
    rules: list[ApprovalRule] = []
    if policy is not None:
        findings += permissions(request, policy.document, now)
        rules = rules_for(request, policy.document)
    if approvals is not None:
        findings += approval_itself(approvals, now)
    if approvals is not None or rules:
        findings += enough(rules, approvals)
    return Verdict(tuple(findings), policy.name if policy else "", renewers(rules))


# --- what the policy permits --------------------------------------------------------------------


def permissions(request: Request, document: Document, now: datetime) -> Iterator[Finding]:
    who = request.subject.title
    active = f"{who} may act." if request.active else f"{who} is switched off or not known here."
    yield Finding(Check.SUBJECT, request.active, active)
    tool = document.tool(request.action)
    if tool is None:
        allowed = document.others == "allow"
        said = "is no tool of the policy"
        ending = ", which leaves such actions alone." if allowed else "."
        yield Finding(Check.TOOL, allowed, f"{request.action} {said}{ending}")
        if allowed:
            return
    else:
        yield Finding(Check.TOOL, True, f"{request.action} is a tool of risk {tool.risk}.")
        yield parameters_fit(tool, request.parameters)
    yield granted(request, document.grants, now)


def parameters_fit(tool: Tool, parameters: dict[str, Any]) -> Finding:
    # With a registry of its own, so that no schema is ever fetched from anywhere.
    validator = Draft202012Validator(tool.parameters, registry=Registry())
    try:
        errors = sorted(validator.iter_errors(parameters), key=lambda error: str(error.json_path))
    except Unresolvable:
        return Finding(Check.PARAMETERS, False, "The tool's schema refers to one that is not here.")
    except RecursionError:
        said = "The parameters or the tool's schema go deeper than can be checked."
        return Finding(Check.PARAMETERS, False, said)
    first = errors[0] if errors else None
    if first is None:
        return Finding(Check.PARAMETERS, True, "The parameters fit the tool's schema.")
    # Without the value: it may be private.
    place = ".".join(map(str, first.path)) or "the parameters"
    said = f"{place} does not fit the tool's schema ({first.validator})."
    return Finding(Check.PARAMETERS, False, said)


def granted(request: Request, grants: Sequence[Grant], now: datetime) -> Finding:
    mine = [grant for grant in grants if is_for(grant, request)]
    if not mine:
        said = f"No grant lets {request.subject.title} use {request.action}."
        return Finding(Check.GRANT, False, said)
    beyond = [beyond_limits(grant, request, now) for grant in mine]
    if "" in beyond:
        return Finding(Check.GRANT, True, f"A grant lets {request.subject.title} do this.")
    return Finding(Check.GRANT, False, beyond[0])


def is_for(grant: Grant, request: Request) -> bool:
    return any(covers(pattern, request.action) for pattern in grant.actions) and any(
        names(pattern, request) for pattern in grant.subjects
    )


def names(pattern: str, request: Request) -> bool:
    if pattern.startswith(GROUP):
        return pattern.removeprefix(GROUP) in request.groups
    return pattern in (ANY, str(request.subject), f"{request.subject.type}:{ANY}")


def beyond_limits(grant: Grant, request: Request, now: datetime) -> str:
    """What of the request is beyond the grant, in a sentence; empty when nothing is."""
    who = request.subject.title
    if grant.tenants and request.tenant not in grant.tenants:
        return f"The grant of {who} is not for {request.tenant}."
    if grant.window is not None and not is_open(grant.window, now):
        return f"The grant of {who} does not count at this time."
    if grant.max_amount is not None and is_above(request, grant.max_amount, grant.currency):
        return f"{who} may do this up to {grant.currency} {grant.max_amount:,.2f}."
    outside = (
        path
        for path, limit in grant.parameters.items()
        if not is_within(limit, value_at(request.parameters, path))
    )
    first = next(outside, None)
    return f"{first} is beyond what {who} may set." if first is not None else ""


def is_above(request: Request, amount: Decimal, currency: str) -> bool:
    """An amount that nobody states, or of another currency, is above every limit."""
    if request.amount is None or request.currency != currency:
        return True
    return abs(request.amount) > amount


def value_at(parameters: Any, path: str) -> Any:
    value = parameters
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            return MISSING
        value = value[name]
    return value


def is_within(limit: Limit, value: Any) -> bool:
    if limit.one_of is not None and not any(equal(value, one) for one in limit.one_of):
        return False
    if limit.prefix is not None and not starts(value, limit.prefix):
        return False
    if limit.max is None and limit.min is None:
        return True
    number = as_number(value)
    if number is None:
        return False
    return (limit.max is None or number <= limit.max) and (limit.min is None or number >= limit.min)


def starts(value: Any, prefix: str) -> bool:
    return isinstance(value, str) and value.startswith(prefix)


def as_number(value: Any) -> Decimal | None:
    """A number, or a text that is one to every reader, unlike "9e-1" and "1_0"."""
    if isinstance(value, str):
        return Decimal(value) if PLAIN_NUMBER.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    number = Decimal(str(value))
    return number if number.is_finite() else None


# --- what was approved --------------------------------------------------------------------------


def rules_for(request: Request, document: Document) -> list[ApprovalRule]:
    """The approval rules that a request comes under; each of them must be met."""
    tool = document.tool(request.action)
    return [
        rule
        for rule in document.approvals
        if any(covers(pattern, request.action) for pattern in rule.actions)
        and (not rule.risks or (tool is not None and tool.risk in rule.risks))
        and (rule.above is None or is_above(request, rule.above, rule.currency))
    ]


def approval_itself(approvals: Approvals, now: datetime) -> Iterator[Finding]:
    """Whether there is one that could count: for this action, not over, not used, not ended."""
    changed = ", ".join(approvals.changed)
    said = f"Otherwise than proposed: {changed}." if changed else "It is what was proposed."
    yield Finding(Check.ACTION, not changed, said)
    used = "Another write has used the approval." if approvals.used else "The approval is unused."
    yield Finding(Check.USED, not approvals.used, used)
    until = f"{approvals.expires_at:%Y-%m-%d %H:%M:%S} UTC"
    over = approvals.expires_at <= now
    said = f"The approval ran out at {until}." if over else f"The approval counts until {until}."
    yield Finding(Check.EXPIRY, not over, said)


def enough(rules: Sequence[ApprovalRule], approvals: Approvals | None) -> list[Finding]:
    """Whether each rule is met. What does not count is told only where nothing makes up for it."""
    if approvals is None:
        said = "It was never proposed, and needs an approval."
        return [Finding(Check.PROPOSAL, False, said)]
    if approvals.closed:
        return [Finding(Check.APPROVALS, False, f"The proposal was {approvals.closed}.")]
    given = latest_by_each(approvals.given)
    reasons = {each.by: why_not_counted(each, approvals.proposers) for each in given}
    counting = [each for each in given if reasons[each.by] is None]
    found = whether_enough(rules or [ANY_ONE], counting)
    if found.passed:
        return [found]
    return [*(reason for reason in reasons.values() if reason is not None), found]


ANY_ONE = ApprovalRule(actions=[ANY])


def latest_by_each(given: Iterable[Given]) -> list[Given]:
    """One approval of each, the latest: nobody counts twice."""
    return list({each.by: each for each in sorted(given, key=lambda each: each.at)}.values())


def why_not_counted(given: Given, proposers: frozenset[Subject]) -> Finding | None:
    """Why this approval counts for nothing; None: it counts."""
    who = given.by.title
    if is_among(given.by, proposers):
        said = f"{who} has proposed it, or it is theirs otherwise."
        return Finding(Check.SELF_APPROVAL, False, said)
    if given.withdrawn:
        return Finding(Check.WITHDRAWN, False, f"{who} has withdrawn the approval.")
    if given.lacks:
        return Finding(Check.APPROVER, False, f"{who} {given.lacks}.")
    if not given.fits:
        return Finding(Check.ACTION, False, f"{who} has approved something else.")
    return None


def whether_enough(rules: Sequence[ApprovalRule], counting: Sequence[Given]) -> Finding:
    for rule in rules:
        found = sum(counts_for(rule, each) for each in counting)
        if found < rule.needed:
            said = f"{found} of {rule.needed} approvals of {approvers(rule)}."
            return Finding(Check.APPROVALS, False, said)
    people = ", ".join(each.by.title for each in counting)
    return Finding(Check.APPROVALS, True, f"Approved by {people}.")


def counts_for(rule: ApprovalRule, given: Given) -> bool:
    if given.by.type is SubjectType.SOURCE:
        return given.by.id in rule.sources
    return not rule.groups or not given.groups.isdisjoint(rule.groups)


def approvers(rule: ApprovalRule) -> str:
    """Who an approval may come from, in words."""
    named = [*rule.groups, *(f"{source} (another system)" for source in rule.sources)]
    return " or ".join(named) if named else "people who may approve"


def renewers(rules: Sequence[ApprovalRule]) -> str:
    """Who may approve it, in words, so that a no says whom to ask."""
    said = [f"{rule.needed} of {approvers(rule)}" for rule in rules if rule.groups or rule.sources]
    return "; ".join(said) or ANYONE
