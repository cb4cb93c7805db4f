"""Whose runs somebody may see and control: rights are held per tenant.

Only here is guardian asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404
from guardian.shortcuts import get_objects_for_user

from workflows.models import Run, Tenant

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def visible_tenants(user: User) -> QuerySet[Tenant]:
    tenants: QuerySet[Tenant] = get_objects_for_user(user, "workflows.view_tenant", klass=Tenant)
    return tenants


def visible_runs(user: User) -> QuerySet[Run]:
    return Run.objects.filter(tenant__in=visible_tenants(user))


def run_for(user: User, run: UUID) -> Run:
    """Raises `Http404` when there is none that this person may see."""
    found = visible_runs(user).select_related("tenant").filter(pk=run).first()
    if found is None:
        raise Http404
    return found


def may_view_payloads(user: User, tenant: Tenant) -> bool:
    return bool(user.has_perm("workflows.view_payloads", tenant))


def may_control(user: User, tenant: Tenant) -> bool:
    """Whether this person may cancel, pause and resume the tenant's runs."""
    return bool(user.has_perm("workflows.control_runs", tenant))


def controlled_run_for(user: User, run: UUID) -> Run:
    """Raises `Http404` when there is none that this person may see and control."""
    found = run_for(user, run)
    if not may_control(user, found.tenant):
        raise Http404
    return found
