"""One operation: what was intended, sent, said; what can be decided; the record."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime

from django.contrib.auth.models import User
from django.urls import reverse

from reconciliation.core.dashboard import page_of
from reconciliation.core.decide import decide
from reconciliation.core.facts import WAIT_SENTENCES, HoldReason, Wait, WaitReason
from reconciliation.core.states import DecisionKind, EvidenceKind, OperationState
from reconciliation.decision_pages import ProposalShown
from reconciliation.models import Operation
from reconciliation.pages import BlockedStep, OperationPage, Owner
from reconciliation.selectors.attempts import NOTHING_ATTEMPTED, Attempted
from reconciliation.selectors.blocked import blocked_by
from reconciliation.selectors.case import Case, load_case
from reconciliation.selectors.contract import contract_card
from reconciliation.selectors.decide_parts import DecideParts, decided_parts, open_parts
from reconciliation.selectors.evidence import (
    asked_source,
    cards_of,
    choices_of,
    first_asked,
    is_stale,
    says,
)
from reconciliation.selectors.forms_shown import drafted, overtaken
from reconciliation.selectors.ladder import in_common, ladder_of, summary_of
from reconciliation.selectors.linked import given_up, linked_to
from reconciliation.selectors.options import offers, options_of
from reconciliation.selectors.record import record_of
from reconciliation.selectors.sides import sides_of
from reconciliation.selectors.words import (
    amount_of,
    named,
    owner_of,
    owners_of,
    sentence_of,
    window_of,
)
from reconciliation.services.offers import Ground, needs_second
from workflows.pages import Fact, Link
from workflows.selectors import step_names
from workflows.selectors.run_children import link_to
from workflows.selectors.words import counted, title_of

OWNERS_SHOWN = 8
NOTHING_NEEDED = "Nothing is needed from you."


def operation_page(
    operation: Operation, user: User, now: datetime, attempted: Attempted = NOTHING_ATTEMPTED
) -> OperationPage:
    """The page of an operation that `user` may see at `now`; it comes from `access`.

    `attempted`: the form that was sent and not recorded.
    """
    return page_of_case(load_case(operation, user, now), attempted)


def page_of_case(case: Case, attempted: Attempted = NOTHING_ATTEMPTED) -> OperationPage:
    operation, user, now, hold = case.operation, case.user, case.now, case.hold
    parts = decide_parts(case, attempted)
    provider_url = address_of_provider(case)
    return OperationPage(
        id=operation.pk,
        title=operation.summary,
        lede=lede(case, parts.proposal),
        state=operation.state,
        outcome_unknown=outcome_unknown(case),
        provider=case.provider,
        run=Link(title_of(operation.run), reverse("run", args=[operation.run_id])),
        position=position(operation),
        started_by=link_to(operation.run.parent) if operation.run.parent else None,
        approval_url=reverse("approval", args=[operation.proposal_id])
        if operation.proposal_id
        else "",
        intended=f"{operation.summary}.",
        intended_facts=tuple(intended_facts(case)),
        contract=contract_card(case, f"{provider_url}#runbook" if provider_url else ""),
        seen=fingerprint(case),
        owner=owner_of(hold, user, now) if hold else None,
        held_since=hold.opened_at if hold else None,
        due_at=hold.due_at if hold else None,
        is_late=hold is not None and hold.due_at <= now,
        request=request_shown(case),
        sent_summary=summary_of(case),
        sent_note=in_common(case),
        ladder=ladder_of(case),
        says=says(case),
        evidence=cards_of(case),
        sides=sides_of(case),
        asks_again_at=asks_again_at(case),
        provider_url=provider_url,
        result_url=page_of(operation.provider.dashboard_url, operation.resource),
        blocks=blocks(case),
        people=people(case, parts.proposal),
        record=record_of(case),
        decide=parts.decide,
        not_yours=parts.not_yours,
        proposal=parts.proposal,
        decision=parts.decision,
        correction=parts.correction,
        overtaken=overtaken(attempted, now),
        linked=linked_to(case),
        irreversible=case.contract.irreversible,
        takes_two=takes_two(case),
        is_asking=bool(asked_source(case)),
        first_asked=first_asked(case),
        is_final=case.state.is_settled,
    )


def decide_parts(case: Case, attempted: Attempted) -> DecideParts:
    if case.hold is None:
        return decided_parts(case.decisions, case.user, attempted, case.draft)
    ground = Ground(case.hold, case.facts, case.now, offers(case))
    options = options_of(case, drafted(attempted, case.draft))
    choices = choices_of(case)
    return open_parts(ground, case.user, options, choices, attempted, case.draft, case.proposals)


# --- what it comes to -------------------------------------------------------------------------


def lede(case: Case, proposal: ProposalShown | None) -> str:
    """One plain sentence or two: what is known, and what is needed."""
    if case.hold is not None and case.state.is_settled:
        return f"{case.hold.message} Its run has gone on and is not moved by it."
    if case.hold is not None and proposal is not None and not proposal.is_void:
        return (
            f"{case.hold.message} {proposal.by} proposed “{proposal.title}”: nothing moves until "
            f"somebody else confirms it{waits_too(case)}."
        )
    if case.hold is not None:
        return f"{case.hold.message} Nothing more is sent until someone decides{waits_too(case)}."
    if not case.state.is_settled:
        return under_way(case)
    match case.state:
        case OperationState.REJECTED:
            return f"{case.provider} refused it, and nothing changed there. The step has failed."
        case OperationState.ABANDONED:
            return given_up(case)
        case _:
            return verified(case)


def waits_too(case: Case) -> str:
    """How much waits for a decision, in the sentence that everybody reads first."""
    number = len(blocks(case)) - 1
    if number < 1:
        return ""
    return f", and {counted(number, 'step')} {'waits' if number == 1 else 'wait'} for that"


def verified(case: Case) -> str:
    if any(row.postcondition for row in case.evidence if row.kind != EvidenceKind.OPERATOR):
        return "It took effect and the result was checked. Nothing is needed."
    stated = [row for row in case.evidence if row.completes and row.by_id is not None]
    if stated:
        return f"{stated[-1].source} stated that it took effect. Nothing is needed."
    return "It took effect. Nothing is needed."


def under_way(case: Case) -> str:
    """What it waits for, and whose it is to move."""
    move = decide(case.facts, case.now)
    waits = WAIT_SENTENCES[move.reason] if isinstance(move, Wait) else ""
    if isinstance(move, Wait) and move.reason is WaitReason.DISPATCH:
        return f"{where_it_is(case)} {waits}"
    return f"{where_it_is(case)} {waits or 'A worker goes on with it.'} {NOTHING_NEEDED}"


def where_it_is(case: Case) -> str:
    match case.state:
        case OperationState.INTENDED:
            return "It is written down, and nothing of it is on its way."
        case OperationState.SENDING:
            return f"It is on its way to {case.provider}."
        case OperationState.APPLIED | OperationState.POSTCONDITION_FAILED:
            return "It took effect."
        case OperationState.HELD:
            return "It was decided."
        case _:
            return "It was sent and no usable answer came."


def outcome_unknown(case: Case) -> bool:
    """Held, and nobody knows whether it took effect; the hold's own sentence says so."""
    if case.hold is None or case.hold.reason == HoldReason.NOT_VERIFIABLE:
        return False
    return bool(sentence_of(case.hold).unknown)


def fingerprint(case: Case) -> str:
    """Something short that changes whenever anything that a decision rests on has changed."""
    operation, hold = case.operation, case.hold
    rests_on = (
        operation.state,
        case.facts.dispatch,
        operation.provider.contradicted_at,
        [(row.number, row.state) for row in case.transmissions],
        [(row.pk, is_stale(case, row)) for row in case.evidence],
        (hold.pk, hold.version, hold.due_at <= case.now) if hold else None,
        [row.pk for row in case.decisions],
        hold.proposal_id if hold else None,
        window_of(operation, case.now).state,
        asked_source(case),
        [(offer.kind, offer.allowed) for offer in offers(case)] if hold else None,
        case.ahead.waiting if hold and case.ahead else None,
    )
    return hashlib.sha256(repr(rests_on).encode()).hexdigest()[:16]


def address_of_provider(case: Case) -> str:
    """Of the provider's page; empty for who may not see it."""
    slug = case.operation.provider.slug
    return reverse("provider", args=[slug]) if case.sees_provider else ""


def asks_again_at(case: Case) -> datetime | None:
    """When Romulus asks the provider next by itself; None while somebody else is to act."""
    asks = case.hold is None and case.state is OperationState.UNKNOWN
    return case.operation.due_at if asks else None


# --- what was intended ------------------------------------------------------------------------


def position(operation: Operation) -> str:
    names = step_names(operation.run)
    if operation.step not in names:
        return f"step {operation.step}"
    return f"step {names.index(operation.step) + 1} of {len(names)}"


def intended_facts(case: Case) -> list[Fact]:
    operation = case.operation
    facts = [
        Fact("Action", operation.action, code=True),
        Fact("Target", operation.target),
        Fact("Asked for by", f"step {operation.step}"),
        Fact("Written down", "", at=operation.created_at),
    ]
    if operation.amount is not None:
        facts.append(Fact("Amount", amount_of(operation)))
    if case.contract.irreversible:
        facts.append(Fact("Irreversible", "once done, it cannot be called back"))
    if case.contract.key is not None:
        facts.append(Fact("Same-request key", operation.idempotency_key, code=True))
    return facts


def request_shown(case: Case) -> str:
    """What was prepared, without what the provider's allow-list hides (promise P9)."""
    if not case.payloads:
        return ""
    parameters = json.dumps(case.operation.parameters_redacted, indent=2, ensure_ascii=False)
    return f"{case.operation.action}\n{parameters}"


# --- what it blocks, and who answers ----------------------------------------------------------


def blocks(case: Case) -> tuple[BlockedStep, ...]:
    if case.state.is_settled or case.operation.run.finished_at is not None:
        return ()
    return blocked_by(BlockedStep(case.operation.step, "this operation", here=True), case.ahead)


def people(case: Case, proposal: ProposalShown | None) -> tuple[tuple[str, Owner], ...]:
    if case.hold is None or case.hold.queue is None:
        return ()
    queue = case.hold.queue
    owners = [named(case.hold, owner, case.user) for owner in owners_of(case.hold)[:OWNERS_SHOWN]]
    roles = tuple(("Owns it" if owner.barred else "Can decide", owner) for owner in owners)
    return (("Queue", Owner(queue.name, group=True)), *roles, *confirming(case, proposal))


def takes_two(case: Case) -> bool:
    """Whether what moves it takes two people."""
    return case.hold is not None and needs_second(case.hold, DecisionKind.APPLIED)


def confirming(case: Case, proposal: ProposalShown | None) -> tuple[tuple[str, Owner], ...]:
    """Who may confirm what is proposed, else what the reader would propose, where it takes two:
    also that nobody may."""
    if not takes_two(case):
        return ()
    names = (proposal.seconds if proposal else case.seconds.names) or ("nobody else yet",)
    return tuple(("Can confirm", Owner(name)) for name in names)
