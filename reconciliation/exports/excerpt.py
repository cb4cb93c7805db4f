"""The entries of the audit record about one case, with what shows that they are its entries.

Entries about other things are named by their digests alone; `core.chain` says why that is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet

from reconciliation.core.chain import Entry, route
from reconciliation.models import AuditEntry, Operation
from reconciliation.services.audit import as_chained
from workflows.core.tables import as_json, listed
from workflows.selectors.batches import BATCH_ROWS, in_batches

RULE = (
    "hash = sha256 of the lines: number, content, previous_hash, skip_hash. content = sha256 of "
    "the file audit/NUMBER.json. previous_hash is the hash of entry NUMBER-1; skip_hash that of "
    "the entry whose number is NUMBER with its lowest set bit cleared; both empty for entry 0"
)


def about(operation: Operation) -> QuerySet[AuditEntry]:
    """What the record says of the operation and of its run."""
    subjects = [f"operation:{operation.pk}", f"run:{operation.run_id}"]
    return AuditEntry.objects.filter(object__in=subjects)


def entries_about(operation: Operation, head: int) -> Iterator[AuditEntry]:
    """That, up to entry `head`, in order."""
    for batch in in_batches(about(operation).filter(seq__lte=head), "seq"):
        yield from batch


def chain_pieces(head: AuditEntry, shown: set[int]) -> Iterator[str]:
    """The way from `head` to each of the `shown` entries, as JSON in pieces."""
    yield "{\n"
    yield f'"rule": {as_json(RULE)},\n'
    yield f'"head": {as_json({"seq": head.seq, "hash": head.hash})},\n'
    yield f'"shown": {as_json(sorted(shown))},\n'
    yield '"links": ['
    yield from listed(link_of(entry) for entry in entries_on(route(head.seq, shown), shown))
    yield "]\n}\n"


def entries_on(way: list[int], shown: set[int]) -> Iterator[Entry]:
    """The entries of `way`, in its order; of the first rule only those that are shown, since
    what is not shown of those proves nothing. One that is missing is missed by `verify`."""
    for start in range(0, len(way), BATCH_ROWS):
        numbers = way[start : start + BATCH_ROWS]
        found = {row.seq: row for row in AuditEntry.objects.filter(seq__in=numbers)}
        for seq, row in ((seq, found[seq]) for seq in numbers if seq in found):
            entry = as_chained(row)
            if seq in shown or not entry.is_of_first_rule:
                yield entry


def link_of(entry: Entry) -> dict[str, Any]:
    link = {"seq": entry.seq, "content": entry.content, "hash": entry.hash}
    if entry.is_of_first_rule:
        return link | {"first_rule": True}
    return link | {"previous_hash": entry.previous_hash, "skip_hash": entry.skip_hash}


def file_of(seq: int) -> str:
    return f"audit/{seq}.json"
