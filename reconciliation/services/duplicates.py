"""The duplicate finder: asks the destination for every operation again, and reports what is double.

Two effects where one was meant is the worst that can happen, so it is looked for even where
nothing points to it. Asking is paced, needs no lease, and changes nothing at the provider. What is
found is evidence: the operation keeps its state, the provider is repeated to no more, and its
owner is told by the contradiction.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

import structlog
from django.db import transaction

from reconciliation.adapters.base import Prepared, Unavailable
from reconciliation.core.states import EvidenceKind
from reconciliation.models import Evidence, Operation, Provider
from reconciliation.models.evidence import DUPLICATE_AUDIT
from reconciliation.sealing import unseal
from reconciliation.services.contradictions import contradict
from reconciliation.services.holds import locked_state, open_later_conflict
from reconciliation.services.ledger import WITH_PROVIDER
from reconciliation.services.pacing import count_turn
from reconciliation.services.providers import contract_of
from reconciliation.services.reconcile import asked
from workflows.failpoints import failpoint
from workflows.services.clock import database_now

log = structlog.get_logger(__name__)

BATCH = 200  # rows read at once
LONGEST_RESOURCE = 300  # its column's length


@dataclass(frozen=True)
class Double:
    """One operation with more than one effect."""

    operation: UUID
    provider: str
    summary: str
    resources: tuple[str, ...]


@dataclass
class Audit:
    """What an audit came to.

    Attributes:
        asked: operations that the destination was asked for and told of.
        unanswered: those that it could not be asked for.
        not_listed: those whose provider has no look-up: nothing can be said of them.
    """

    asked: int = 0
    unanswered: int = 0
    not_listed: int = 0
    doubles: list[Double] = field(default_factory=list)


def find_duplicates(
    provider: Provider | None,
    *,
    since: timedelta,
    per_second: float,
    say: Callable[[str], None],
) -> Audit:
    """Ask for what was sent `since` then, at most `per_second` times a second.

    Args:
        provider: only its operations; all providers' otherwise.
    """
    audit = Audit()
    for operation in sent_operations(provider, since):
        if contract_of(operation).look_up is None:
            audit.not_listed += 1
            continue
        began = time.monotonic()
        wait_for_turn(operation)
        look(operation, audit)
        if (audit.asked + audit.unanswered) % BATCH == 0:
            say(f"{audit.asked + audit.unanswered} asked for, {len(audit.doubles)} double")
        time.sleep(max(0.0, 1 / per_second - (time.monotonic() - began)))
    return audit


def wait_for_turn(operation: Operation) -> None:
    """Behind whatever reconciliation asks of the same provider: an audit is in no hurry."""
    turn = count_turn(operation)
    time.sleep(max(0.0, (turn - database_now()).total_seconds()))


def sent_operations(provider: Provider | None, since: timedelta) -> Iterator[Operation]:
    """Every operation of which something may have left, oldest first, in batches by ID."""
    sent = (
        Operation.objects.select_related(*WITH_PROVIDER)
        .filter(first_sent_at__gte=database_now() - since)
        .order_by("id")
    )
    if provider is not None:
        sent = sent.filter(provider=provider)
    batch = list(sent[:BATCH])
    while batch:
        yield from batch
        batch = list(sent.filter(id__gt=batch[-1].pk)[:BATCH])


def look(operation: Operation, audit: Audit) -> None:
    """Ask for one operation, and keep it on record if it is double."""
    found = resources_of(operation)
    if isinstance(found, Unavailable):
        audit.unanswered += 1
        return
    audit.asked += 1
    if len(found) > 1:
        provider = operation.provider.slug
        audit.doubles.append(Double(operation.pk, provider, operation.summary, found))
        keep_double(operation, found)


def resources_of(operation: Operation) -> tuple[str, ...] | Unavailable:
    """The resources at the destination that carry the operation's own marker, each once."""
    prepared = Prepared.from_bytes(unseal(operation.request_sealed))
    records = asked(
        operation,
        lambda adapter, seconds: adapter.look_up(operation.action, operation.pk, seconds, prepared),
    )
    if isinstance(records, Unavailable):
        return records
    ours = [record.resource for record in records if record.operation == str(operation.pk)]
    return tuple(dict.fromkeys(resource for resource in ours if resource))


def keep_double(operation: Operation, resources: tuple[str, ...]) -> bool:
    """Put a double effect on record, once; False when it is known already."""
    known = set(operation.evidence.values_list("resource", flat=True))
    new = [resource for resource in resources if resource not in known]
    if operation.evidence.filter(source=DUPLICATE_AUDIT).exists() and not new:
        return False
    failpoint("before_duplicate")
    with transaction.atomic():
        came_later = locked_state(operation).is_settled
        contradict(operation, f"{' and '.join(resources)} for one operation")
        for resource in new or resources[-1:]:
            Evidence.objects.create(
                operation=operation,
                kind=EvidenceKind.CONFLICT,
                resource=resource[:LONGEST_RESOURCE],
                source=DUPLICATE_AUDIT,
                detail_redacted=f"one of {len(resources)} effects of this operation",
            )
        if came_later:
            open_later_conflict(operation)
    failpoint("after_duplicate")
    log.error("duplicate.found", operation=str(operation.pk), effects=len(resources))
    return True
