"""The audit record as a person may see it: entries about what they may see, the newest first.

An entry names its object as text, such as "run:<id>". So a page reads a bounded stretch of the
record and shows what of it may be seen; the next one goes on where it ended. Seven queries.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.urls import reverse

from reconciliation import access
from reconciliation.audit_pages import AuditPage, AuditRow
from reconciliation.models import AuditEntry
from workflows.access import visible_events, visible_runs, visible_tenants
from workflows.core.words import who
from workflows.pages import Fact, Pager
from workflows.selectors.paging import PAGE_ROWS, address, as_uuid
from workflows.selectors.words import heading

STRETCH = 500  # entries that one page looks through
TEXT_SHOWN = 300
WITH_PAGES = frozenset({"run", "operation", "event"})

Names = Mapping[str, str]
"""What an object of the record is called, by how the record names it."""


def audit_page(user: User, *, before: str = "", object: str = "", actor: str = "") -> AuditPage:
    """A page of the record for `user`.

    Args:
        before: the number of an entry: only what is older than that.
        object: only entries about this, as the record names it.
        actor: only what this one did, as the record names them.
    """
    entries = AuditEntry.objects.order_by("-seq")
    if object:
        entries = entries.filter(object=object)
    if actor:
        entries = entries.filter(actor=actor)
    if before.isdecimal():
        entries = entries.filter(seq__lt=int(before[:18]))
    stretch = list(entries[:STRETCH])
    names = visible_names(user, stretch)
    shown = [entry for entry in stretch if may_see(user, entry, names)][:PAGE_ROWS]
    looked_at = stretch.index(shown[-1]) + 1 if len(shown) == PAGE_ROWS else len(stretch)
    more = looked_at < len(stretch) or len(stretch) == STRETCH
    here = {"object": object, "actor": actor}
    return AuditPage(
        rows=tuple(row_of(entry, names) for entry in shown),
        object=names.get(object, object),
        actor=who(actor) if actor else "",
        pager=Pager(
            newer=address(reverse("audit"), here) if before else "",
            older=address(reverse("audit"), here | {"before": str(stretch[looked_at - 1].seq)})
            if more
            else "",
        ),
    )


def may_see(user: User, entry: AuditEntry, names: Names) -> bool:
    """What was done to runs, operations and events is for those who may see them; the rest is
    setting up, which is for administrators."""
    return user.is_superuser or entry.object in names


def visible_names(user: User, entries: Sequence[AuditEntry]) -> dict[str, str]:
    """What those objects of `entries` are called that `user` may see."""
    wanted: dict[str, set[UUID]] = defaultdict(set)
    for entry in entries:
        kind, _, name = entry.object.partition(":")
        pk = as_uuid(name)
        if pk is not None:
            wanted[kind].add(pk)
    names: dict[str, str] = {}
    if wanted["run"]:
        runs = visible_runs(user).filter(pk__in=wanted["run"]).defer("input")
        names |= {f"run:{run.pk}": f"Run {heading(run)}" for run in runs}
    if wanted["operation"]:
        operations = access.visible_operations(user).filter(pk__in=wanted["operation"])
        names |= {f"operation:{each.pk}": each.summary for each in operations.only("summary")}
    if wanted["event"]:
        events = visible_events(user).filter(pk__in=wanted["event"])
        names |= {f"event:{each.pk}": f"Event {each.type}" for each in events.only("type")}
    if wanted["tenant"]:
        tenants = visible_tenants(user).filter(pk__in=wanted["tenant"])
        names |= {f"tenant:{each.pk}": f"Tenant {each.name}" for each in tenants}
    return names


def row_of(entry: AuditEntry, names: Names) -> AuditRow:
    detail = dict(entry.detail)
    reason = str(detail.pop("reason", "") or "")
    return AuditRow(
        number=entry.seq,
        at=entry.at,
        actor=who(entry.actor),
        actor_url=address(reverse("audit"), {"actor": entry.actor}),
        verb=entry.verb,
        object=names.get(entry.object, entry.object),
        object_url=url_of(entry.object),
        object_entries_url=address(reverse("audit"), {"object": entry.object}),
        reason=reason,
        facts=tuple(Fact(name, shortened(value)) for name, value in detail.items()),
        hash=entry.hash[:12],
    )


def url_of(object: str) -> str:
    """The page of what an entry is about; empty where there is none."""
    kind, _, name = object.partition(":")
    pk = as_uuid(name)
    return reverse(kind, args=[pk]) if pk is not None and kind in WITH_PAGES else ""


def shortened(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= TEXT_SHOWN else text[: TEXT_SHOWN - 1] + "…"
