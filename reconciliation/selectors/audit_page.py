"""The audit record as a person may see it: entries about what they may see, the newest first.

An entry names its object as text, such as "run:<id>". So a page reads a bounded stretch of the
record and shows what of it may be seen; the next one goes on where it ended. Nine queries.
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
from reconciliation.audit_pages import AuditPage, AuditRow, ChainCheck
from reconciliation.core.audit_asked import AuditAsked
from reconciliation.core.facts import HoldReason
from reconciliation.core.reason_words import reason_words
from reconciliation.models import AuditEntry
from reconciliation.selectors.audit_entries import entries_asked, known_verbs, objects_named
from reconciliation.selectors.words import DECISIONS
from reconciliation.services.audit import CHAIN, hash_of
from workflows.access import visible_events, visible_runs, visible_tenants
from workflows.core.words import who
from workflows.pages import Export, Fact, Pager
from workflows.selectors.paging import PAGE_ROWS, address, as_uuid
from workflows.selectors.words import heading

STRETCH = 500  # entries that one page looks through
TEXT_SHOWN = 300
REASON_CODES = frozenset(map(str, HoldReason))
WITH_PAGES = frozenset({"run", "operation", "event"})

Names = Mapping[str, str]
"""What an object of the record is called, by how the record names it."""


def audit_page(user: User, asked: AuditAsked) -> AuditPage:
    """A page of the record for `user`."""
    stretch = list(entries_asked(asked)[:STRETCH])
    names = visible_names(user, stretch)
    shown = [entry for entry in stretch if may_see(user, entry, names)][:PAGE_ROWS]
    looked_at = stretch.index(shown[-1]) + 1 if len(shown) == PAGE_ROWS else len(stretch)
    more = looked_at < len(stretch) or len(stretch) == STRETCH
    here = reverse("audit")
    return AuditPage(
        rows=tuple(row_of(entry, names) for entry in shown),
        asked=asked,
        object=object_shown(asked, names),
        actor=who(asked.who),
        verbs=known_verbs(),
        check=latest_check(),
        export=Export(address(reverse("audit_export"), asked.query())),
        pager=Pager(
            newer=address(here, asked.query()) if asked.before else "",
            older=address(here, asked.query(before=str(stretch[looked_at - 1].seq)))
            if more
            else "",
        ),
    )


def object_shown(asked: AuditAsked, names: Names) -> str:
    """What is asked for, by its name where the reader may see it."""
    named = (names[each] for each in objects_named(asked.object) if each in names)
    return next(named, asked.object)


def latest_check() -> ChainCheck | None:
    entry = AuditEntry.objects.filter(object=CHAIN).order_by("-seq").first()
    if entry is None:
        return None
    return ChainCheck(entry.at, who(entry.actor), entry.detail["upto"], entry.detail["broken"])


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
    reason = in_words(str(detail.pop("reason", "") or ""))
    return AuditRow(
        number=entry.seq,
        at=entry.at,
        actor=who(entry.actor),
        actor_url=address(reverse("audit"), {"who": entry.actor}),
        verb=entry.verb,
        object=names.get(entry.object, entry.object),
        object_url=url_of(entry.object),
        object_entries_url=address(reverse("audit"), {"object": entry.object}),
        reason=reason,
        facts=tuple(fact_of(name, value) for name, value in detail.items()),
        hash=entry.hash,
        fits=entry.hash == hash_of(entry),
    )


def url_of(object: str) -> str:
    """The page of what an entry is about; empty where there is none."""
    kind, _, name = object.partition(":")
    pk = as_uuid(name)
    return reverse(kind, args=[pk]) if pk is not None and kind in WITH_PAGES else ""


def fact_of(name: str, value: Any) -> Fact:
    term, text = name.replace("_", " "), shortened(value)
    said = DECISIONS.get(text, text) if name == "kind" else text
    return Fact(term[:1].upper() + term[1:], said)


def in_words(reason: str) -> str:
    """What the record keeps as a code, as people say it; what somebody typed as it stands."""
    return reason_words(reason) if reason in REASON_CODES else reason


def shortened(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        value = ", ".join(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= TEXT_SHOWN else text[: TEXT_SHOWN - 1] + "…"
