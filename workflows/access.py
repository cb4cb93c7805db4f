"""Whose runs somebody may see and control: rights are held per tenant.

What rights somebody holds is read in `workflows.rights`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Length, Now
from django.http import Http404

from workflows.core.sources import Scheme
from workflows.models import Event, EventSource, Proposal, Run, Tenant
from workflows.rights import holds, objects_with
from workflows.services.authorising import APPROVE_RIGHT

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def visible_tenants(user: User) -> QuerySet[Tenant]:
    return objects_with(user, "workflows.view_tenant", Tenant.objects.all())


def visible_runs(user: User) -> QuerySet[Run]:
    return Run.objects.filter(tenant__in=visible_tenants(user))


def run_for(user: User, run: UUID) -> Run:
    """Raises `Http404` when there is none that this person may see."""
    # Whoever may see a run may see what started it, too: it is its tenant's.
    runs = visible_runs(user).select_related("tenant", "parent").defer("parent__input")
    found = runs.filter(pk=run).first()
    if found is None:
        raise Http404
    return found


def may_view_payloads(user: User, tenant: Tenant) -> bool:
    return holds(user, "workflows.view_payloads", tenant)


def may_control(user: User, tenant: Tenant) -> bool:
    """Whether this person may cancel, pause and resume the tenant's runs."""
    return holds(user, "workflows.control_runs", tenant)


def controlled_run_for(user: User, run: UUID) -> Run:
    """Raises `Http404` when there is none that this person may see and control."""
    found = run_for(user, run)
    if not may_control(user, found.tenant):
        raise Http404
    return found


def visible_events(user: User) -> QuerySet[Event]:
    return Event.objects.filter(tenant__in=visible_tenants(user))


def event_for(user: User, event: UUID, *, body: bool = True) -> Event:
    """Raises `Http404` when there is none that this person may see.

    Without `body` only its `size` is read.
    """
    found = visible_events(user).select_related("source", "tenant")
    found = found.annotate(size=Length("body"))
    row = (found if body else found.defer("body")).filter(pk=event).first()
    if row is None:
        raise Http404
    return row


def controlled_event_for(user: User, event: UUID) -> Event:
    """Raises `Http404` when there is none that this person may see and act on.

    Attaching an event moves a run, so it takes the right to control the tenant's runs.
    """
    found = event_for(user, event, body=False)
    if not may_control(user, found.tenant):
        raise Http404
    return found


def visible_proposals(user: User) -> QuerySet[Proposal]:
    return Proposal.objects.filter(tenant__in=visible_tenants(user))


def proposal_for(user: User, proposal: UUID) -> Proposal:
    """The proposal, with its tenant, its run and when it was read.

    Raises `Http404` when there is none that this person may see.
    """
    rows = visible_proposals(user).select_related("tenant", "run").annotate(now=Now())
    found = rows.filter(pk=proposal).first()
    if found is None:
        raise Http404
    found.read_at = found.now
    return found


RIGHTS = ("view_payloads", "control_runs", "approve_actions")


def rights_on(user: User, tenant: Tenant) -> frozenset[str]:
    """All that this person may do with a tenant, at once: for pages that ask for several."""
    return frozenset(name for name in RIGHTS if holds(user, f"workflows.{name}", tenant))


def approving_tenants(user: User) -> QuerySet[Tenant]:
    """Those of the visible tenants for which this person may answer what is proposed."""
    return objects_with(user, APPROVE_RIGHT, visible_tenants(user))


def sendable_sources(user: User) -> QuerySet[EventSource]:
    """The internal sources, of tenants that this person may see, that they may send events of."""
    internal = EventSource.objects.filter(scheme=Scheme.INTERNAL, enabled=True)
    sources = objects_with(user, "workflows.send_event", internal)
    return sources.filter(tenant__in=visible_tenants(user)).order_by("name", "pk")
