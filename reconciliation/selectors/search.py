"""Search over all that a person may see, grouped by kind. Six queries, each over indexes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Collate
from django.urls import reverse

from reconciliation import access
from reconciliation.models import Operation, Provider, Transmission
from reconciliation.selectors.words import amount_of
from workflows.access import visible_events, visible_runs, visible_tenants
from workflows.core.needles import Needle
from workflows.search_pages import Group, Hit, SearchPage
from workflows.selectors.finding import FOUND, LOOKED_AT, among, by_end, by_id, by_text
from workflows.selectors.paging import address, as_uuid
from workflows.selectors.search import events_found, ranked, runs_found, waits_found

SHOWN = 10  # of each kind, where all are shown
PAGE = 50  # where one kind is
NOT_READ = ("request_sealed", "parameters_redacted", "receipt", "key_scope")

Finder = Callable[["Searcher", Needle], list[Hit]]


@dataclass(frozen=True)
class Searcher:
    """Who searches; the tenants that they may see are asked for once."""

    user: User
    tenants: Sequence[UUID]


def search_page(user: User, typed: str, *, kind: str = "", after: str = "") -> SearchPage:
    """What fits `typed` of what `user` may see: some of each kind, or a page of one.

    `after` is the ID of a hit: only what follows it.
    """
    needle = Needle.of(typed)
    if not needle.is_long_enough:
        return SearchPage(needle.text, (), too_short=bool(needle.text))
    who = Searcher(user, list(visible_tenants(user).values_list("pk", flat=True)))
    kind = kind if kind in KINDS else ""
    wanted = {kind: KINDS[kind]} if kind else KINDS
    groups = (
        group_of(name, title, find(who, needle), needle, after if kind else "", whole=bool(kind))
        for name, (title, find) in wanted.items()
    )
    return SearchPage(needle.text, tuple(group for group in groups if group.hits), kind)


def group_of(
    kind: str, title: str, hits: list[Hit], needle: Needle, after: str, *, whole: bool
) -> Group:
    last = as_uuid(after)
    begin = next((place + 1 for place, hit in enumerate(hits) if hit.id == last), 0)
    size = PAGE if whole else SHOWN
    shown = hits[begin : begin + size]
    query = {"q": needle.text, "kind": kind}
    next_page = query | ({"after": str(shown[-1].id)} if whole and shown else {})
    more = begin + size < len(hits)
    return Group(
        kind,
        title,
        tuple(shown),
        total=len(hits),
        capped=len(hits) >= FOUND,
        more_url=address(reverse("search"), next_page) if more else "",
        first_url=address(reverse("search"), query) if begin else "",
    )


def only_hit(user: User, typed: str) -> str:
    """The page of the one thing whose whole ID was typed; empty unless there is exactly one."""
    needle = Needle.of(typed)
    if needle.whole_id is None:
        return ""
    found = [
        reverse(name, args=[needle.whole_id])
        for name, visible in (
            ("operation", access.visible_operations(user)),
            ("run", visible_runs(user)),
            ("event", visible_events(user)),
        )
        if visible.filter(pk=needle.whole_id).exists()
    ]
    return found[0] if len(found) == 1 else ""


# --- operations and providers -----------------------------------------------------------------


def operations_found(who: Searcher, needle: Needle) -> list[Hit]:
    visible = Operation.objects.filter(run__tenant__in=who.tenants)
    sends = Transmission.objects.filter(operation__run__tenant__in=who.tenants)
    ways = [
        *by_id(visible, needle),
        *by_text(visible, "target", needle),
        *by_end(Operation, "target", needle),
        *by_text(visible.exclude(resource=""), "resource", needle),
        *by_text(
            sends.exclude(provider_request_id=""),
            "provider_request_id",
            needle,
            key="operation",
        ),
        by_key(visible, needle),
    ]
    rows = among(visible, ways).select_related("provider").defer(*NOT_READ)
    return ranked(
        operation_hit(operation, needle) for operation in rows.annotate(request=request_id(needle))
    )


def by_key(visible: QuerySet[Operation], needle: Needle) -> QuerySet[Any]:
    """The operations under this very idempotency key, at any provider."""
    providers = Provider.objects.values("pk")
    return visible.filter(provider__in=providers, idempotency_key=needle.text).values("pk")[
        :LOOKED_AT
    ]


def request_id(needle: Needle) -> Subquery:
    """What the provider called one of the operation's requests, where that fits."""
    sends = Transmission.objects.filter(operation=OuterRef("pk")).annotate(
        text=Collate(F("provider_request_id"), "C")
    )
    fitting = sends.filter(text__range=needle.text_range).order_by("text")
    return Subquery(fitting.values("provider_request_id")[:1])


def operation_hit(operation: Operation, needle: Needle) -> Hit:
    named = [
        ("target", operation.target),
        ("resource", operation.resource),
        ("request ID", operation.request or ""),  # type: ignore[attr-defined]  # annotated
        ("idempotency key", operation.idempotency_key),
    ]
    fit, name, text = needle.best(operation.pk, named)
    amount = amount_of(operation)
    return Hit(
        id=operation.pk,
        url=reverse("operation", args=[operation.pk]),
        title=operation.summary,
        detail=f"{operation.action} at {operation.provider.name}{f', {amount}' if amount else ''}",
        fit=fit,
        name=name,
        text=text,
        kind="operation",
        state=operation.state,
        at=operation.created_at,
    )


def providers_found(who: Searcher, needle: Needle) -> list[Hit]:
    """By slug or name; there are few, so whatever their case."""
    shown = access.visible_providers(who.user).filter(stands_in_for=None).order_by("name")
    low = needle.text.lower()
    hits = []
    for provider in shown[:FOUND]:
        named = [("name", provider.name.lower()), ("slug", provider.slug)]
        fit, name, _ = Needle(low).best(provider.pk, named)
        hits.append(
            Hit(
                id=provider.pk,
                url=reverse("provider", args=[provider.slug]),
                title=provider.name,
                detail=f"{provider.adapter}, account {provider.account}",
                fit=fit,
                name=name,
                text=provider.slug if name == "slug" else provider.name,
                kind="",
                state="",
                at=None,
            )
        )
    return ranked(hits)


KINDS: Mapping[str, tuple[str, Finder]] = {
    "operations": ("Operations", operations_found),
    "runs": ("Runs", lambda who, needle: runs_found(who.tenants, needle)),
    "waits": ("Waits", lambda who, needle: waits_found(who.tenants, needle)),
    "events": ("Events", lambda who, needle: events_found(who.tenants, needle)),
    "providers": ("Providers", providers_found),
}
