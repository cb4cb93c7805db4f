"""A policy as data: tools, grants and approval rules. Validated by one schema, never by code.

    {"tools": [{"action": "refunds.create", "risk": "high"}],
     "grants": [{"subjects": ["workflow:refund"], "actions": ["refunds.*"], "max_amount": "5000",
                 "currency": "EUR", "parameters": {"order": {"prefix": "ORD-"}}}],
     "approvals": [{"actions": ["refunds.create"], "above": "1000", "currency": "EUR",
                    "needed": 2, "groups": ["finance"]}]}

What is not granted is denied. A policy edits nothing: another version of it takes its place.
"""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from jsonschema.exceptions import SchemaError
from jsonschema.validators import Draft202012Validator
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError
from pydantic import model_validator as validated

from workflows.core.boundary.subjects import Subject
from workflows.core.errors import InvalidPolicy, UsageError
from workflows.core.values import first_problem

ANY = "*"
GROUP = "group:"
MOST = 500  # entries of one list: a policy is read by people
MOST_NEEDED = 10


class Risk(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def known_subject(text: str) -> str:
    """Check a subject where it is written, and return it by our own word for its type."""
    kind, _, name = text.partition(":")
    if text == ANY or (text.startswith(GROUP) and name):
        return text
    try:
        known = Subject.of(kind, "any" if name == ANY else name)
    except UsageError as error:
        raise ValueError(f"{text!r}: {error}") from error
    return f"{known.type}:{name}"


def known_pattern(text: str) -> str:
    """Check an action, or a prefix of actions that ends in `.*`."""
    plain = text.removesuffix(".*") if text != ANY else "any"
    if not plain or ANY in plain:
        raise ValueError(f"{text!r}: an action such as refunds.create, or all under refunds.*")
    return text


def known_schema(schema: dict[str, Any]) -> dict[str, Any]:
    try:
        # With formats, so that a pattern that is no regular expression is found here.
        Draft202012Validator.check_schema(
            schema, format_checker=Draft202012Validator.FORMAT_CHECKER
        )
    except SchemaError as error:
        raise ValueError(f"no JSON Schema: {error.message}") from error
    return schema


def of_utc(clock: time) -> time:
    if clock.tzinfo is not None:
        raise ValueError("hours are UTC: a time such as 07:00, without a zone")
    return clock


SubjectPattern = Annotated[str, Field(max_length=200), AfterValidator(known_subject)]
ActionPattern = Annotated[str, Field(max_length=100), AfterValidator(known_pattern)]
Currency = Annotated[str, Field(pattern=r"^([A-Z]{3})?$")]
Clock = Annotated[time, AfterValidator(of_utc)]
Amount = Annotated[Decimal, Field(ge=0, max_digits=20, decimal_places=4)]


class Tool(Strict):
    """A named action. `parameters` is the JSON Schema that what is sent must fit."""

    action: Annotated[str, Field(min_length=1, max_length=100)]
    title: Annotated[str, Field(max_length=200)] = ""
    risk: Risk = Risk.MEDIUM
    parameters: Annotated[dict[str, Any], AfterValidator(known_schema)] = {}


class Limit(Strict):
    """What one parameter may be; whatever is set must hold."""

    max: Decimal | None = None
    min: Decimal | None = None
    prefix: str | None = None
    one_of: list[Any] | None = None

    @validated(mode="after")
    def says_something(self) -> Self:
        if all(each is None for each in (self.max, self.min, self.prefix, self.one_of)):
            raise ValueError("a limit says max, min, prefix or one_of")
        return self


class Window(Strict):
    """When a grant counts. Days are 1 (Monday) to 7; hours are UTC, the end not included, so they
    do not move with summer time. Hours that go over midnight are of the day on which they begin."""

    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    days: list[Annotated[int, Field(ge=1, le=7)]] = []
    opens: Clock | None = None
    closes: Clock | None = None

    @property
    def over_midnight(self) -> bool:
        return self.opens is not None and self.closes is not None and self.closes < self.opens


class Grant(Strict):
    """Who may use which tools, and how far. What is left out limits nothing.

    Attributes:
        subjects: such as "agent:refund-bot", "workflow:refund", "group:support", "agent:*".
        tenants: slugs.
        max_amount: what is at stake at most, in `currency`; another currency, or an amount that
            nobody states, is beyond it.
        parameters: by their path with dots.
    """

    subjects: Annotated[list[SubjectPattern], Field(min_length=1, max_length=MOST)]
    actions: Annotated[list[ActionPattern], Field(min_length=1, max_length=MOST)]
    tenants: Annotated[list[str], Field(max_length=MOST)] = []
    max_amount: Amount | None = None
    currency: Currency = ""
    parameters: dict[str, Limit] = {}
    window: Window | None = None

    @validated(mode="after")
    def names_its_currency(self) -> Self:
        if self.max_amount is not None and not self.currency:
            raise ValueError("max_amount needs its currency")
        return self


class ApprovalRule(Strict):
    """How many people must have approved, and who they are.

    Attributes:
        above: only what is worth more than this, in `currency`. A write of another currency, or
            of no stated amount, counts as worth more.
        risks: only tools of these risk classes.
        groups: of whose members each approval must be; any entitled person where none is named.
        sources: slugs of event sources whose approvals count as one of those needed: another
            system, in which the people of that system approve.
    """

    actions: Annotated[list[ActionPattern], Field(min_length=1, max_length=MOST)]
    above: Amount | None = None
    currency: Currency = ""
    risks: list[Risk] = []
    needed: Annotated[int, Field(ge=1, le=MOST_NEEDED)] = 1
    groups: Annotated[list[str], Field(max_length=MOST)] = []
    sources: Annotated[list[str], Field(max_length=MOST)] = []

    @validated(mode="after")
    def names_its_currency(self) -> Self:
        if self.above is not None and not self.currency:
            raise ValueError("above needs its currency")
        return self


class Document(Strict):
    """The whole policy.

    Attributes:
        others: what is said of an action that is none of `tools`.
        decision_point: slug of an external decision point that is asked as well, just before the
            write; both must allow.
    """

    tools: Annotated[list[Tool], Field(max_length=MOST)] = []
    grants: Annotated[list[Grant], Field(max_length=MOST)] = []
    approvals: Annotated[list[ApprovalRule], Field(max_length=MOST)] = []
    others: Literal["deny", "allow"] = "deny"
    decision_point: Annotated[str, Field(max_length=50)] = ""

    @validated(mode="after")
    def names_each_tool_once(self) -> Self:
        names = [tool.action for tool in self.tools]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise ValueError(f"the tool {twice!r} stands there twice")
        return self

    @property
    def groups(self) -> frozenset[str]:
        """The groups that it names, for grants and for approvals."""
        granted = (pattern for grant in self.grants for pattern in grant.subjects)
        subjects = (each.removeprefix(GROUP) for each in granted if each.startswith(GROUP))
        return frozenset(subjects) | {name for rule in self.approvals for name in rule.groups}

    def tool(self, action: str) -> Tool | None:
        return next((tool for tool in self.tools if tool.action == action), None)


class Policy(Strict):
    """A version of a policy that is in force. `name` says whose and which: "northwind, 3"."""

    name: str
    document: Document


def parse_policy(document: Any) -> Document:
    """Return the policy that `document`, plain JSON, says.

    Raises:
        InvalidPolicy: names the place.
    """
    try:
        return Document.model_validate(document)
    except ValidationError as error:
        raise InvalidPolicy(f"policy: {first_problem(error)}") from error


def covers(pattern: str, action: str) -> bool:
    """Whether the pattern of an action means `action`."""
    if pattern.endswith(".*"):
        return action.startswith(pattern.removesuffix("*"))
    return pattern in (ANY, action)


def is_open(window: Window, now: datetime) -> bool:
    """Whether `now` lies in the window; hours and days are those of UTC."""
    utc = now.astimezone(UTC)
    if window.since is not None and utc < window.since:
        return False
    if window.until is not None and utc >= window.until:
        return False
    after_opening = window.opens is None or utc.time() >= window.opens
    before_closing = window.closes is None or utc.time() < window.closes
    day = utc.isoweekday()
    if window.over_midnight:
        if not (after_opening or before_closing):
            return False
        day = day if after_opening else (utc - timedelta(days=1)).isoweekday()
    elif not (after_opening and before_closing):
        return False
    return not window.days or day in window.days
