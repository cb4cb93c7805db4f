"""The part of a case's page where it is decided: the form, an open proposal, or the correction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import User

from reconciliation.access import standing_of, why_not_decide
from reconciliation.core.states import DecisionKind
from reconciliation.decision_pages import (
    CorrectionForm,
    DecisionForm,
    DecisionOption,
    EvidenceChoice,
    ProposalShown,
    Recorded,
)
from reconciliation.models import Decision, DecisionDraft, DecisionProposal
from reconciliation.selectors.attempts import Attempted
from reconciliation.selectors.forms_shown import correction_of, form_of, may_not_decide
from reconciliation.selectors.two_people import ended_before, proposal_shown
from reconciliation.selectors.words import recorded
from reconciliation.services.offers import Ground


@dataclass(frozen=True)
class DecideParts:
    """What a page shows of it; the names are the page's own."""

    decide: DecisionForm | None = None
    not_yours: str = ""
    proposal: ProposalShown | None = None
    decision: Recorded | None = None
    correction: CorrectionForm | None = None


def open_parts(
    ground: Ground,
    user: User,
    options: tuple[DecisionOption, ...],
    evidence: tuple[EvidenceChoice, ...],
    attempted: Attempted,
    kept: DecisionDraft | None,
    proposals: Sequence[DecisionProposal],
) -> DecideParts:
    """Of an open hold; `kept` is what the reader has typed on it, `proposals` what was proposed on
    the case, each with its end. While something is proposed that still holds, there is no form."""
    hold: Any = ground.hold
    hold.its_parts = ground.parts  # where `owner_of` reads it
    stands = standing_of(user, hold, ground.parts)
    proposal = proposal_shown(ground, options, attempted, stands)
    not_yours = may_not_decide(hold, stands)
    if not_yours or (proposal is not None and not proposal.is_void):
        return DecideParts(not_yours=not_yours, proposal=proposal)
    form = form_of(ground, options, evidence, attempted, kept)
    return DecideParts(decide=replace(form, ended=ended_before(hold, proposals)), proposal=proposal)


def decided_parts(
    decisions: Sequence[Decision], user: User, attempted: Attempted, kept: DecisionDraft | None
) -> DecideParts:
    """Of a case without an open hold: the decision in force, and how to correct it. The hold of
    each decision comes with it."""
    in_force = in_force_of(decisions)
    if in_force is None:
        return DecideParts()
    correction = None
    if not why_not_decide(user, in_force.hold):
        correction = correction_of(in_force, attempted, kept)
    return DecideParts(decision=recorded(in_force), correction=correction)


def in_force_of(decisions: Sequence[Decision]) -> Decision | None:
    """The latest that is no correction."""
    made = [row for row in decisions if row.kind != DecisionKind.CORRECTION]
    return made[-1] if made else None
