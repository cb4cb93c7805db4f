"""The decision form as it is shown: its options, its code, and the token that is posted once."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import uuid4

from django.contrib.auth.models import User
from django.urls import reverse

from reconciliation.access import may_decide
from reconciliation.core.errors import AlreadyDecided
from reconciliation.models import Decision, Hold
from reconciliation.pages import (
    DecisionForm,
    DecisionOption,
    Draft,
    EvidenceChoice,
    Overtaken,
)
from reconciliation.selectors.words import DECISIONS, name_of, owners_of, recorded
from reconciliation.services.answers import code_of

ONLY_OWNERS = "You can read this case, but not decide it."
NAMED_OWNERS = 5
PAGES = {"operation": "operation", "run": "held_run"}  # names of addresses


@dataclass(frozen=True)
class Attempted:
    """What came of a form that was not recorded: what was typed, and why not."""

    draft: Draft = field(default=Draft())
    errors: dict[str, str] = field(default_factory=dict)
    overtaken_by: AlreadyDecided | None = None


NOTHING_ATTEMPTED = Attempted()


def form_of(
    hold: Hold,
    options: tuple[DecisionOption, ...],
    evidence: tuple[EvidenceChoice, ...],
    now: datetime,
    attempted: Attempted,
) -> DecisionForm:
    subject: Literal["operation", "run"] = "run" if hold.operation_id is None else "operation"
    case = hold.case_id
    return DecisionForm(
        url=reverse(f"{PAGES[subject]}_decide", args=[case]),
        page_url=reverse(PAGES[subject], args=[case]),
        subject=subject,
        options=options,
        code=code_of(case),
        version=hold.version,
        token=new_token(hold),
        read_at=now,
        evidence=evidence,
        draft=attempted.draft,
        errors=attempted.errors,
    )


def new_token(hold: Hold) -> str:
    """Of the very hold that was read, so that it cannot decide a later one of the same case."""
    return f"{hold.pk.hex}-{uuid4().hex}"


def may_not_decide(hold: Hold | None, user: User) -> str:
    """Why this person may not decide an open case; empty when they may, or none is open."""
    if hold is None or may_decide(user, hold):
        return ""
    if hold.queue is None:
        return f"{ONLY_OWNERS} No queue takes it: an administrator must set one up."
    names = [name_of(owner) for owner in owners_of(hold)[:NAMED_OWNERS]]
    who = f": {', '.join(names)}" if names else ""
    return f"{ONLY_OWNERS} The owners of {hold.queue.name} decide it{who}."


def overtaken(attempted: Attempted, now: datetime) -> Overtaken | None:
    """Who or what was first, beside what was typed."""
    first = attempted.overtaken_by
    if first is None:
        return None
    theirs = recorded(first.decision) if isinstance(first.decision, Decision) else None
    message = f"{theirs.by} decided before you." if theirs else str(first)
    title = DECISIONS.get(attempted.draft.kind, "No decision")
    return Overtaken(message, theirs, title, attempted.draft.note, now)
