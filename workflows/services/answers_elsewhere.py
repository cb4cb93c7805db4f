"""Answers of other systems, which arrive as events through the inbox.

Only a source that the policy names for this very action is heard, for this very proposal, and it
counts as one. What does not count is on record, and the run waits on.
"""

from __future__ import annotations

from typing import Any

import structlog

from workflows.core.boundary.evaluate import rules_for
from workflows.core.boundary.subjects import Subject, SubjectType, is_among
from workflows.core.errors import InvalidInput, UsageError
from workflows.core.proposals import APPROVAL_EVENT, MAX_NOTE, Answer
from workflows.core.words import storable
from workflows.models import Approval, Event, Proposal, Wait
from workflows.services import audit
from workflows.services.answers import asking_about, end_proposal, settled_as, slug_of
from workflows.services.authorising import proposers_of
from workflows.services.payloads import Kept, payload_of

log = structlog.get_logger(__name__)


def take_in_events(proposal: Proposal) -> None:
    """Write down what another system has answered, in the caller's transaction, which holds run and
    proposal."""
    event = answering_event(proposal)
    if event is None:
        return
    row = answer_in(event, proposal) if event.source.slug in heard_for(proposal) else None
    if row is None:
        not_counted(event, proposal)
        return
    audit.record(
        row.subject, "answered", f"proposal:{proposal.pk}", answer=row.answer, by=row.by_name
    )
    fits = row.digest == proposal.parameters_digest
    target = settled_as(proposal, Answer(row.answer)) if fits else None
    if target is not None:
        end_proposal(proposal, target)


def heard_for(proposal: Proposal) -> set[str]:
    """The sources that the policy names for this action."""
    asking = asking_about(proposal)
    rules = rules_for(asking.request, asking.version.policy.document) if asking.version else []
    return {source for rule in rules for source in rule.sources}


def not_counted(event: Event, proposal: Proposal) -> None:
    source = event.source.slug
    log.warning("approval.not_counted", event_row=str(event.pk), source=source)
    detail = {"event": str(event.pk), "source": source}
    audit.record("system", "did not count", f"proposal:{proposal.pk}", **detail)


def answering_event(proposal: Proposal) -> Event | None:
    """What has ended the latest wait of this proposal, where nobody has written it down.

    Also of one that was attached by hand: what answers another proposal answers not this one.
    """
    waits = Wait.objects.filter(run=proposal.run_id, correlation=str(proposal.pk))
    rows = Event.objects.filter(
        matches__wait__in=waits.order_by("-id").values("pk")[:1],
        correlation=str(proposal.pk),
        type=APPROVAL_EVENT,
        approval=None,
    )
    # The console's own events are of what is written down already.
    others = rows.exclude(source__slug=slug_of(proposal.tenant_id))
    return others.select_related("source").first()


def answer_in(event: Event, proposal: Proposal) -> Approval | None:
    """What another system has answered; None for what is no answer.

    The event's data: `answer` (approve, deny or question), `digest` as the proposal's page and its
    own event show it, `by`, the name of who answered there, and `note`.
    """
    if event.body is None:
        return None  # it was purged
    source = event.source
    kept = Kept(bytes(event.body), event.encoding, source.scheme, source.max_bytes)
    try:
        said = payload_of(kept, dict[str, Any])
    except InvalidInput:
        return None
    said = said.get("data", said) if isinstance(said.get("data", None), dict) else said
    kind, digest, by = (said.get(name) for name in ("answer", "digest", "by"))
    if kind not in ("approve", "deny", "question") or not isinstance(digest, str):
        return None
    name = storable(by, 100) if isinstance(by, str) else "somebody"
    if kind == Answer.APPROVE and names_proposer(name, proposal):
        return None
    note = said.get("note")
    return Approval.objects.create(
        proposal=proposal,
        answer=kind,
        subject=str(Subject(SubjectType.SOURCE, event.source.slug)),
        by_name=f"{name} ({event.source.name})"[:200],
        note=storable(note, MAX_NOTE) if isinstance(note, str) else "",
        digest=storable(digest, 100),
        event=event,
        token=event.pk,
    )


def names_proposer(name: str, proposal: Proposal) -> bool:
    """Whether somebody of this name has proposed it: in another system people are told by name."""
    try:
        named = Subject.of(SubjectType.PERSON, name)
    except UsageError:
        return False  # no account is called so
    return is_among(named, proposers_of(proposal))
