"""What the page of a run is made of here, for its stamp (`workflows.selectors.run_stamp`)."""

from __future__ import annotations

from reconciliation.selectors.operation_stamp import IN_FORCE
from workflows.selectors.stamps import version_of

OF_RUN = "(SELECT id FROM reconciliation_operation WHERE run_id = %(run)s)"
PROVIDERS = "(SELECT provider_id FROM reconciliation_operation WHERE run_id = %(run)s)"
QUEUES = (
    "(SELECT queue_id FROM reconciliation_hold WHERE run_id = %(run)s UNION ALL"  # noqa: S608
    f" SELECT default_queue_id FROM reconciliation_provider WHERE id IN {PROVIDERS})"
)
# What the page of a run is made of here; `object` is how the record names it.
ROWS = (
    version_of("reconciliation_operation", "it.run_id = %(run)s"),
    version_of("reconciliation_transmission", f"it.operation_id IN {OF_RUN}"),
    version_of("reconciliation_evidence", f"it.operation_id IN {OF_RUN}"),
    version_of("reconciliation_hold", "it.run_id = %(run)s"),
    version_of(
        "reconciliation_decision",
        "it.hold_id IN (SELECT id FROM reconciliation_hold WHERE run_id = %(run)s)",
    ),
    version_of("reconciliation_auditentry", "it.object = %(object)s"),
    version_of("reconciliation_provider", f"it.id IN {PROVIDERS}"),
    version_of("reconciliation_dispatchstop", IN_FORCE),
    version_of("reconciliation_reviewqueue", f"it.id IN {QUEUES}"),
    version_of("reconciliation_reviewqueue_owners", f"it.reviewqueue_id IN {QUEUES}"),
    version_of("reconciliation_shift", f"it.queue_id IN {QUEUES}"),
    version_of(
        "auth_user",
        "it.id IN (SELECT user_id FROM reconciliation_reviewqueue_owners"  # noqa: S608
        f" WHERE reviewqueue_id IN {QUEUES}"
        f" UNION ALL SELECT person_id FROM reconciliation_shift WHERE queue_id IN {QUEUES}"
        " UNION ALL SELECT assignee_id FROM reconciliation_hold WHERE run_id = %(run)s)",
    ),
)
