"""Whether what a provider's page polls is still what it was: its readiness, and its switch."""

from __future__ import annotations

from django.contrib.auth.models import User

from reconciliation.selectors.operation_stamp import IN_FORCE
from workflows.selectors.stamps import READER, TEAM, Stamp, stamp, version_of

QUEUES = "(SELECT id FROM queue)"
OWNERS = (
    "(SELECT user_id FROM reconciliation_reviewqueue_owners"  # noqa: S608 (a constant)
    f" WHERE reviewqueue_id IN {QUEUES})"
)
OF_QUEUES = "it.object_pk IN (SELECT id::text FROM queue)"
ROWS = (
    *READER,
    version_of("reconciliation_provider", "it.slug = %(slug)s"),
    version_of("reconciliation_dispatchstop", IN_FORCE),
    # Who answers for it, and may decide.
    version_of("reconciliation_reviewqueue", f"it.id IN {QUEUES}"),
    version_of("reconciliation_reviewqueue_owners", f"it.reviewqueue_id IN {QUEUES}"),
    version_of("auth_user", f"it.id IN {OWNERS}"),
    version_of("auth_user_groups", f"it.user_id IN {OWNERS}"),
    version_of("guardian_userobjectpermission", f"it.user_id IN {OWNERS} AND {OF_QUEUES}"),
    version_of("guardian_groupobjectpermission", OF_QUEUES),
)
# While something is stopped there, what waits for that is counted.
STAMP = f"""
    WITH {TEAM}, provider AS (
        SELECT id, default_queue_id FROM reconciliation_provider WHERE slug = %(slug)s
    ), queue AS (
        SELECT id FROM reconciliation_reviewqueue WHERE provider_id = (SELECT id FROM provider)
        UNION SELECT default_queue_id FROM provider
    )
    SELECT statement_timestamp() AS now, CASE WHEN EXISTS (
        SELECT FROM reconciliation_dispatchstop it WHERE ({IN_FORCE})
            AND (it.provider_id IS NULL OR it.provider_id = (SELECT id FROM provider))
    ) THEN '' ELSE md5(concat_ws(' ', {", ".join(ROWS)})) END AS rows
"""  # noqa: S608 (constants)


def provider_stamp(user: User, slug: str) -> Stamp:
    """Of what the page of a provider polls, whether or not `user` may see it. One query."""
    return stamp(STAMP, {"user": user.pk, "slug": slug})
