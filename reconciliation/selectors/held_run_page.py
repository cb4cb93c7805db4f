"""A run that is held itself, where no operation is: why, what can be decided, the record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from django.contrib.auth.models import User
from django.urls import reverse

from reconciliation.core.states import HoldState
from reconciliation.models import Decision, DecisionDraft, DecisionProposal, Hold
from reconciliation.pages import BlockedStep, HeldRunPage
from reconciliation.selectors.attempts import NOTHING_ATTEMPTED, Attempted
from reconciliation.selectors.blocked import blocked_by
from reconciliation.selectors.decide_parts import DecideParts, decided_parts, open_parts
from reconciliation.selectors.forms_shown import drafted, overtaken
from reconciliation.selectors.record import decision_entry, hold_entries, proposal_entries
from reconciliation.selectors.run_options import run_options
from reconciliation.selectors.words import (
    give_people,
    owner_of,
    people_of,
    sentence_of,
)
from reconciliation.services.drafts import drafts_of
from reconciliation.services.offers import ground_of
from workflows.models import Run
from workflows.pages import Fact, Link
from workflows.selectors import step_names
from workflows.selectors.ahead import ahead_of, branches_beside, waiting_above
from workflows.selectors.run_children import link_to
from workflows.selectors.words import label_of, title_of
from workflows.together import together


def held_run_page(
    hold: Hold, user: User, now: datetime, attempted: Attempted = NOTHING_ATTEMPTED
) -> HeldRunPage:
    """The page of a run's hold that `user` may see at `now`; it comes from `access`.

    The hold comes with its run, its assignee, its queue and what is proposed.
    """
    run, is_open = hold.held_run, hold.state == HoldState.OPEN
    decisions, proposals, drafts, owners, shifts, *around = together(
        hold.decisions.order_by("at", "pk"),
        hold.proposals.select_related("end").order_by("at", "pk"),
        drafts_of(user, hold.case_id),
        *people_of(Hold.objects.filter(pk=hold.pk)),
        branches_beside(run),
        waiting_above(run),
    )
    give_people([hold], owners, shifts)
    entries = [
        *hold_entries([hold]),
        *(entry for row in proposals for entry in proposal_entries(row)),
        *(decision_entry(row, now.tzinfo) for row in decisions),
    ]
    kept = next(iter(drafts), None)
    parts = decide_parts(hold, around, decisions, user, attempted, kept, proposals, now)
    return HeldRunPage(
        id=run.pk,
        title=title(hold),
        lede=f"{hold.message} {NOTHING_RUNS if is_open else ''}".strip(),
        state=run.state,
        run=Link(title_of(run), reverse("run", args=[run.pk])),
        position=position(run),
        started_by=link_to(run.parent) if run.parent else None,
        facts=tuple(facts_of(hold)),
        owner=owner_of(hold, user, now),
        held_since=hold.opened_at if is_open else None,
        due_at=hold.due_at if is_open else None,
        is_late=is_open and hold.due_at <= now,
        blocks=blocks(hold, around) if is_open else (),
        record=tuple(sorted(entries, key=lambda entry: entry.at)),
        decide=parts.decide,
        not_yours=parts.not_yours,
        proposal=parts.proposal,
        decision=parts.decision,
        correction=parts.correction,
        overtaken=overtaken(attempted, now),
    )


def decide_parts(
    hold: Hold,
    around: Sequence[list[Run]],
    decisions: list[Decision],
    user: User,
    attempted: Attempted,
    kept: DecisionDraft | None,
    proposals: Sequence[DecisionProposal],
    now: datetime,
) -> DecideParts:
    if hold.state != HoldState.OPEN:
        for decision in decisions:
            decision.hold = hold
        return decided_parts(decisions, user, attempted, kept)
    ground = replace(ground_of(hold), now=now)
    ahead = ahead_of(hold.held_run, hold.held_run.step, *around)
    options = run_options(ground, user, drafted(attempted, kept), ahead)
    return open_parts(ground, user, options, (), attempted, kept, proposals)


NOTHING_RUNS = "No step of it runs until someone decides."


def title(hold: Hold) -> str:
    """The run may have gone on since, so a step is named only while it is held."""
    run = title_of(hold.held_run)
    if hold.state != HoldState.OPEN:
        return f"{run} was held"
    return f"{run} is held at {hold.held_run.step}"


def position(run: Run) -> str:
    names = step_names(run)
    if run.step not in names:
        return f"step {run.step}"
    return f"step {names.index(run.step) + 1} of {len(names)}: {run.step}"


def facts_of(hold: Hold) -> list[Fact]:
    run = hold.held_run
    facts = [
        Fact("Workflow", f"{run.workflow} v{run.version}", code=True),
        Fact("Held since", "", at=hold.opened_at),
        Fact("Helps", sentence_of(hold).settles),
    ]
    label = label_of(run)
    return [*facts, Fact("Started as", label)] if label else facts


def blocks(hold: Hold, around: Sequence[list[Run]]) -> tuple[BlockedStep, ...]:
    run = hold.held_run
    own = BlockedStep(run.step, "this step", here=True)
    return blocked_by(own, ahead_of(run, run.step, *around))
