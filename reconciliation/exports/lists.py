"""The review queue and the audit record as rows of a file."""

from __future__ import annotations

from collections.abc import Iterator

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.urls import reverse

from reconciliation.models import AuditEntry, Hold
from reconciliation.selectors.audit_page import may_see, visible_names
from reconciliation.selectors.queue import detail_of, subject_of
from reconciliation.services.providers import guarded_until
from workflows.core.tables import Row
from workflows.selectors.batches import in_batches

QUEUE_COLUMNS = (
    *("case", "kind", "what", "detail", "action", "target", "provider", "amount", "currency"),
    *("state", "reason", "message", "queue", "assignee", "held_since", "due_at"),
    *("protected_until", "run", "tenant", "page"),
)
AUDIT_COLUMNS = ("entry", "at", "who", "did", "to", "name", "detail", "hash")


def queue_rows(holds: QuerySet[Hold], limit: int) -> Iterator[Row]:
    """The cases of `holds`, those that the reader may see, the most urgent first."""
    shown = holds.select_related(
        *("queue", "assignee", "operation__provider", "run__tenant", "event__tenant")
    )
    for batch in in_batches(shown, "due_at", "pk", limit=limit):
        for hold in batch:
            yield queue_row(hold)


def queue_row(hold: Hold) -> Row:
    operation, run, event = hold.operation, hold.run, hold.event
    kind = "operation" if operation else "run" if run else "event"
    tenant = run.tenant if run else event.tenant if event else None
    return (
        *(hold.case_id, kind, subject_of(hold), detail_of(hold)),
        operation.action if operation else None,
        operation.target if operation else None,
        operation.provider.name if operation else None,
        operation.amount if operation else None,
        operation.currency if operation else None,
        operation.state if operation else None,
        *(hold.reason, hold.message, hold.queue.name if hold.queue else None),
        hold.assignee.get_username() if hold.assignee else None,
        *(hold.opened_at, hold.due_at, guarded_until(operation) if operation else None),
        *(hold.run_id, tenant.slug if tenant else None),
        reverse("operation" if operation else "held_run" if run else "event", args=[hold.case_id]),
    )


def audit_rows(entries: QuerySet[AuditEntry], user: User, limit: int) -> Iterator[Row]:
    """Those of `entries` that `user` may see, the newest first; `limit` of them are looked at."""
    for batch in in_batches(entries, "-seq", limit=limit):
        names = visible_names(user, batch)
        for entry in batch:
            if may_see(user, entry, names):
                yield (
                    *(entry.seq, entry.at, entry.actor, entry.verb, entry.object),
                    *(names.get(entry.object), entry.detail, entry.hash),
                )
