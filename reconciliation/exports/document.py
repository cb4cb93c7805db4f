"""A case as JSON: what was intended, sent, said and decided, and the contract that it rests on.

What is exported is listed here by name, so that a new column stays in until somebody means it to
leave. Never among it: the request's sealed bytes, and the token of a decision's form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Model, QuerySet

from reconciliation import access
from reconciliation.models import CaseNote, Operation, ProposalEnd
from workflows.access import may_view_payloads
from workflows.core.tables import as_json, listed
from workflows.models import Approval, AuthorisationRecord
from workflows.selectors.batches import in_batches

FORMAT = "romulus-case/1"

# What a provider or the workflow wrote: only for those who may see payloads.
PAYLOADS = frozenset(
    {"parameters_redacted", "receipt", "detail_redacted", "differences", "agreements"}
)

OPERATION = (
    *("id", "step", "visit", "effect", "action", "target", "summary", "amount", "currency"),
    *("parameters_redacted", "parameters_digest", "idempotency_key", "key_scope", "state"),
    *("resource", "receipt", "created_at", "first_sent_at", "replay_not_after", "send_again_at"),
    *("settled_at", "supersedes_id", "compensates_id"),
)
TRANSMISSION = (
    *("id", "number", "purpose", "attempt", "worker", "fence", "started_at", "in_flight_until"),
    *("ended_at", "phase", "state", "meaning", "status", "resolves_earlier", "retry"),
    *("retry_after_at", "provider_request_id", "detail_redacted"),
)
EVIDENCE = (
    *("id", "transmission_id", "kind", "completes", "denies", "postcondition", "resource"),
    *(
        "differences",
        "agreements",
        "observed_at",
        "recorded_at",
        "retry_after_at",
        "source",
        "by_id",
    ),
    "detail_redacted",
)
HOLD = ("id", "reason", "message", "opened_at", "due_at", "state", "version", "closed_at")
DECISION = (
    *("id", "hold_id", "kind", "by_id", "by_name", "note", "evidence_id", "resource", "until"),
    *("hold_version", "shown", "at", "proposal_id", "second_id", "second_name", "corrects_id"),
)
PROPOSAL = (
    *("id", "hold_id", "kind", "by_id", "by_name", "note", "resource", "hold_version", "shown"),
    "at",
)
PROPOSAL_END = ("id", "proposal_id", "kind", "by_id", "by_name", "note", "at")
NOTE = ("id", "hold_id", "kind", "text", "by_name", "to_name", "question_id", "at")
# Of the authorisation boundary: every answer that was asked for the write, and who had approved it.
AUTHORISATION = (
    *("id", "at", "asked", "subject", "on_behalf_of", "action", "allowed", "failed", "reason"),
    *("policy_id", "inputs_digest", "decision_id", "proposal_id"),
)
APPROVAL = ("id", "proposal_id", "answer", "subject", "by_name", "note", "digest", "at")


@dataclass(frozen=True)
class Reader:
    """For whom a case is exported, and whether they may see what was sent and said."""

    user: User
    payloads: bool

    @classmethod
    def of(cls, user: User, operation: Operation) -> Reader:
        return cls(user, may_view_payloads(user, operation.run.tenant))


def case_pieces(operation: Operation, reader: Reader, now: datetime) -> Iterator[str]:
    """The case as one JSON object, in pieces: its rows are read and given out batch by batch."""
    facts = {
        "format": FORMAT,
        "read_at": now,
        "read_for": reader.user.get_username(),
        "payloads": "shown" if reader.payloads else "left out: the reader may not see them",
        "operation": fields_of(operation, OPERATION, reader),
        "run": run_of(operation),
        "provider": provider_of(operation),
        "contract": {
            "slug": operation.contract_version.slug,
            "version": operation.contract_version.version,
            "document": operation.contract_version.document,
        },
    }
    yield "{\n"
    for name, value in facts.items():
        yield f"{as_json(name)}: {as_json(value)},\n"
    yield from sections(operation, reader)
    yield "}\n"


def run_of(operation: Operation) -> dict[str, Any]:
    run = operation.run
    return {
        "id": run.pk,
        "workflow": run.workflow,
        "version": run.version,
        "tenant": run.tenant.slug,
        "state": run.state,
        "created_at": run.created_at,
    }


def provider_of(operation: Operation) -> dict[str, Any]:
    provider = operation.provider
    return {"slug": provider.slug, "name": provider.name, "adapter": provider.adapter}


def sections(operation: Operation, reader: Reader) -> Iterator[str]:
    lists: tuple[tuple[str, Iterator[list[Any]], tuple[str, ...]], ...] = (
        ("transmissions", rows_of(operation.transmissions.all(), "number"), TRANSMISSION),
        ("evidence", rows_of(operation.evidence.all(), "recorded_at", "pk"), EVIDENCE),
        ("holds", rows_of(operation.holds.all(), "opened_at", "pk"), HOLD),
        ("proposals", rows_of(operation.proposals.all(), "at", "pk"), PROPOSAL),
        ("proposal_ends", rows_of(ends_on(operation), "at", "pk"), PROPOSAL_END),
        ("decisions", rows_of(operation.decisions.all(), "at", "pk"), DECISION),
        ("notes", rows_of(notes_on(operation, reader), "at", "pk"), NOTE),
        ("authorisations", rows_of(asked_for(operation), "at", "pk"), AUTHORISATION),
        ("approvals", rows_of(approvals_of(operation), "at", "pk"), APPROVAL),
    )
    for place, (name, batches, names) in enumerate(lists):
        yield ("," if place else "") + f'"{name}": ['
        yield from listed(fields_of(row, names, reader) for batch in batches for row in batch)
        yield "]\n"


def ends_on(operation: Operation) -> QuerySet[ProposalEnd]:
    """What became of what was proposed on it."""
    return ProposalEnd.objects.filter(proposal__operation=operation)


def notes_on(operation: Operation, reader: Reader) -> QuerySet[CaseNote]:
    """What people said about it, in the queues that the reader may see, as on its page."""
    holds = access.visible_holds(reader.user).filter(operation=operation)
    return CaseNote.objects.filter(hold__in=holds)


def asked_for(operation: Operation) -> QuerySet[AuthorisationRecord]:
    return AuthorisationRecord.objects.filter(operation=operation.pk)


def approvals_of(operation: Operation) -> QuerySet[Approval]:
    """What was answered to the proposal that the write rests on, where it rests on one."""
    return Approval.objects.filter(proposal=operation.proposal_id)


def rows_of(rows: QuerySet[Any], *keys: str) -> Iterator[list[Any]]:
    return in_batches(rows, *keys)


def fields_of(row: Model, names: Iterable[str], reader: Reader) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names if reader.payloads or name not in PAYLOADS}
