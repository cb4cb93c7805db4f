"""What a person may see, said in SQL: for what every page and every poll asks.

To have Django make these questions anew takes longer than to answer them. Each says what the query
set of the same name does, of which `tests/console/test_frame_rights.py` makes sure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reconciliation.models import ReviewQueue
from workflows.models import Tenant
from workflows.rights import held_on

if TYPE_CHECKING:
    from django.contrib.auth.models import User

# `IN (SELECT unnest(...))`: looked up in a table of them, and not one by one in each row.
OF_VISIBLE_HOLDS = """
    (queue_id IN (SELECT unnest(%(queues)s::uuid[]))
        OR %(any_queue)s AND queue_id IS NOT NULL
        OR %(no_queue)s AND queue_id IS NULL)
    AND (%(any_tenant)s OR tenant_id IN (SELECT unnest(%(tenants)s::uuid[])))
"""
VISIBLE_STOPS = """
    reconciliation_dispatchstop stop
    WHERE (until IS NULL OR until > statement_timestamp())
        AND CASE WHEN tenant_id IS NULL
            THEN EXISTS (
                SELECT FROM workflows_tenant
                WHERE %(any_tenant)s OR id IN (SELECT unnest(%(tenants)s::uuid[]))
            )
            ELSE %(any_tenant)s OR tenant_id IN (SELECT unnest(%(tenants)s::uuid[]))
            END
"""
OWNED = "SELECT reviewqueue_id FROM reconciliation_reviewqueue_owners WHERE user_id = %(user)s"
VISIBLE_CHANNELS = f"""
    reconciliation_channel channel
    WHERE %(superuser)s OR person_id = %(user)s OR queue_id IN ({OWNED})
        AND (%(any_queue)s OR queue_id IN (SELECT unnest(%(queues)s::uuid[])))
"""
TEAM_QUEUES = f"""
    reconciliation_reviewqueue queue
    WHERE id IN ({OWNED}) OR %(any_deciding)s OR id IN (SELECT unnest(%(deciding)s::uuid[]))
"""


# Whether a person holds the right to decide on a queue, whose ID is nothing else's.
DECIDES = """
    (
        EXISTS (SELECT FROM auth_user WHERE id = {person} AND is_superuser)
        OR EXISTS (
            SELECT FROM guardian_userobjectpermission held
            JOIN auth_permission permission ON permission.id = held.permission_id
            WHERE held.user_id = {person} AND held.object_pk = {queue}::text
                AND permission.codename = 'decide'
        )
        OR EXISTS (
            SELECT FROM guardian_groupobjectpermission held
            JOIN auth_permission permission ON permission.id = held.permission_id
            JOIN auth_user_groups member USING (group_id)
            WHERE member.user_id = {person} AND held.object_pk = {queue}::text
                AND permission.codename = 'decide'
        )
    )
"""


# Whether a person may see a tenant, as `workflows.access.visible_tenants` says of active ones.
SEES_TENANT = """
    (
        EXISTS (SELECT FROM auth_user WHERE id = {person} AND is_superuser)
        OR EXISTS (
            SELECT FROM auth_permission permission
            JOIN django_content_type kind ON kind.id = permission.content_type_id
                AND kind.app_label = 'workflows' AND kind.model = 'tenant'
            WHERE permission.codename = 'view_tenant' AND (
                EXISTS (
                    SELECT FROM guardian_userobjectpermission held
                    WHERE held.permission_id = permission.id AND held.user_id = {person}
                        AND held.object_pk = {tenant}::text
                )
                OR EXISTS (
                    SELECT FROM auth_user_user_permissions held
                    WHERE held.permission_id = permission.id AND held.user_id = {person}
                )
                OR EXISTS (
                    SELECT FROM auth_user_groups member
                    LEFT JOIN guardian_groupobjectpermission held
                        ON held.group_id = member.group_id
                        AND held.permission_id = permission.id
                        AND held.object_pk = {tenant}::text
                    LEFT JOIN auth_group_permissions everywhere
                        ON everywhere.group_id = member.group_id
                        AND everywhere.permission_id = permission.id
                    WHERE member.user_id = {person}
                        AND (held.id IS NOT NULL OR everywhere.id IS NOT NULL)
                )
            )
        )
    )
"""


def open_holds_counted(counts: str) -> str:
    """The FROM of `counts` of the open holds for each queue, tenant and assignee of which a person
    may see them: rights are looked at once for each of these, not for each of thousands of holds.
    """
    return f"""
    (
        SELECT queue_id, tenant_id, assignee_id, {counts} FROM reconciliation_hold
        WHERE state = 'open' GROUP BY queue_id, tenant_id, assignee_id
    ) hold
    WHERE {OF_VISIBLE_HOLDS}
"""  # noqa: S608 (constants of our own)


def asked_of(user: User) -> dict[str, Any]:
    """What these are asked with."""
    queues = held_on(user, "reconciliation.view_reviewqueue", ReviewQueue)
    deciding = held_on(user, "reconciliation.decide", ReviewQueue)
    tenants = held_on(user, "workflows.view_tenant", Tenant)
    return {
        "user": user.pk,
        "superuser": user.is_superuser,
        "queues": queues or [],
        "any_queue": queues is None,
        "no_queue": user.is_superuser and user.is_active,
        "deciding": deciding or [],
        "any_deciding": deciding is None,
        "tenants": tenants or [],
        "any_tenant": tenants is None,
    }
