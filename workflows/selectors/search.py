"""Runs, waits and events that fit what a person typed, of the tenants that they may see."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from uuid import UUID

from django.urls import reverse

from workflows.core.needles import Fit, Needle
from workflows.models import Event, Run, Wait
from workflows.search_pages import Hit
from workflows.selectors.finding import among, by_id, by_label, by_text
from workflows.selectors.words import heading

NOT_READ = ("input", "failure")


def runs_found(tenants: Collection[UUID], needle: Needle) -> list[Hit]:
    visible = Run.objects.filter(tenant__in=tenants)
    ways = [
        *by_id(visible, needle),
        *by_text(visible, "start_key", needle),
        *by_label(visible, needle),
    ]
    hits = []
    for run in among(visible, ways).defer(*NOT_READ):
        fit, name, text = needle.best(run.pk, named_of(run, needle))
        hits.append(
            Hit(
                id=run.pk,
                url=reverse("run", args=[run.pk]),
                title=heading(run),
                detail=f"{run.workflow} v{run.version}, step {run.step}",
                fit=fit,
                name=name,
                text=text,
                kind="run",
                state=run.state,
                at=run.created_at,
            )
        )
    return ranked(hits)


def named_of(run: Run, needle: Needle) -> list[tuple[str, str]]:
    """The texts by which a run is found, beside its ID."""
    labels = [(f"label {name}", value) for name, value in run.labels.items()]
    pair = [("label", needle.text)] if needle.label in run.labels.items() else []
    return [("start key", run.start_key or ""), *labels, *pair]


def waits_found(tenants: Collection[UUID], needle: Needle) -> list[Hit]:
    """Waits by their correlation; they are seen on the page of their run."""
    visible = Wait.objects.filter(tenant__in=tenants)
    rows = among(visible, by_text(visible, "correlation", needle))
    hits = []
    for wait in rows.select_related("run").defer("run__input"):
        fit, name, text = needle.best(wait.pk, [("correlation", wait.correlation)])
        hits.append(
            Hit(
                id=wait.pk,
                url=reverse("run", args=[wait.run_id]),
                title=f"{heading(wait.run)}: {wait.step}",
                detail=f"waits for {', '.join(wait.event_types)}",
                fit=fit,
                name=name,
                text=text,
                kind="wait",
                state=wait.state,
                at=wait.started_at,
            )
        )
    return ranked(hits)


def events_found(tenants: Collection[UUID], needle: Needle) -> list[Hit]:
    visible = Event.objects.filter(tenant__in=tenants)
    ways = [
        *by_id(visible, needle),
        *by_text(visible, "event_id", needle),
        *by_text(visible, "correlation", needle),
    ]
    hits = []
    for event in among(visible, ways).select_related("source").defer("body"):
        named = [("event ID", event.event_id or ""), ("correlation", event.correlation)]
        fit, name, text = needle.best(event.pk, named)
        hits.append(
            Hit(
                id=event.pk,
                url=reverse("event", args=[event.pk]),
                title=event.type or "Event without a type",
                detail=f"from {event.source.name}",
                fit=fit,
                name=name,
                text=text,
                kind="event",
                state=event.state,
                at=event.received_at,
            )
        )
    return ranked(hits)


def ranked(hits: Iterable[Hit]) -> list[Hit]:
    """The exact ones first, then what begins so; the newest of each first."""
    fitting = [hit for hit in hits if hit.fit is not Fit.NOT]
    fitting.sort(key=lambda hit: hit.id, reverse=True)
    return sorted(fitting, key=lambda hit: hit.fit)
