"""Who answered what a run asked about, for its log and its timeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from django.urls import reverse

from workflows.core.proposals import Answer
from workflows.models import Approval, Run
from workflows.pages import LogEntry
from workflows.selectors.run_history import History, steps_of_kind
from workflows.selectors.run_parts import Deed, RunParts

ANSWERS_SHOWN = 100

# As a deed, a word beside its mark; as a line of the log, what was done.
ANSWERS = {
    Answer.APPROVE: ("approved", "Approved"),
    Answer.DENY: ("denied", "Denied"),
    Answer.QUESTION: ("asked", "Sent back with a question"),
    Answer.REPLY: ("replied", "Replied"),
    Answer.WITHDRAW: ("withdrew", "Took the approval back"),
}


def with_approvals(parts: RunParts, history: History) -> RunParts:
    """Add the answers of people to what is known of a run; one query where it can ask for any."""
    if not steps_of_kind(history.workflow, "approval"):
        return parts
    answers = answers_of(history.run)
    return replace(
        parts,
        deeds=[*parts.deeds, *map(deed, answers)],
        log=[*parts.log, *map(entry, answers)],
    )


def answers_of(run: Run) -> Sequence[Approval]:
    """The newest answers to what `run` proposed."""
    answers = Approval.objects.filter(proposal__run=run).select_related("proposal")
    return list(answers.order_by("-at")[:ANSWERS_SHOWN])


def deed(row: Approval) -> Deed:
    did, _ = ANSWERS[Answer(row.answer)]
    url = reverse("approval", args=[row.proposal_id])
    return Deed(row.by_name or row.subject, row.at, did, f"{did} {row.proposal.summary}", url)


def entry(row: Approval) -> LogEntry:
    _, lead = ANSWERS[Answer(row.answer)]
    text = f"{lead}: {row.proposal.summary}" + (f" “{row.note}”" if row.note else "")
    return LogEntry(row.at, "answer", row.answer, text, row.by_name or row.subject)
