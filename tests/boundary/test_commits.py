"""What the boundary costs a write: no commit."""

from __future__ import annotations

from django.db import connection
from django.test.utils import CaptureQueriesContext

from reconciliation.services.write_step import execute_write
from tests.approving import answered, approver, policy, proposed
from tests.claiming import claim_at_write
from tests.destination import RunningDestination
from tests.factories import ready_provider
from tests.integration.test_write_commits import commits
from workflows.services.run_view import RunView


def test_it_costs_no_commit_more(committed_db: str, destination: RunningDestination) -> None:
    """The approval is used, and the answer recorded, in the transaction that claims the send."""
    ready_provider("payments", destination.url)
    policy()
    run, proposal = proposed()
    answered(proposal, approver())
    claim = claim_at_write(run)
    with CaptureQueriesContext(connection) as made:
        execute_write(claim, RunView(claim))
    first, *rest = commits(made.captured_queries)
    assert first == [
        "workflows_proposal",
        "workflows_authorisationrecord",
        "operation",
        "transmission",
    ]
    assert rest == [["transmission", "evidence", "operation"]]
