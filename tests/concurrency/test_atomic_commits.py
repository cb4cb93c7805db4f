"""An atomic step whose commit the database refuses: the step's own failure, and nothing of it."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.claiming import ATOMIC, ATOMIC_HOLDING, ATOMIC_RETRIED, attempts, ready_run
from tests.factories import advanced
from workflows.core.definitions import Workflow
from workflows.models import Pause
from workflows.services.run_view import RunView

pytestmark = pytest.mark.usefixtures("committed_db")


@pytest.mark.parametrize(
    ("workflow", "state"),
    [(ATOMIC, "failed"), (ATOMIC_RETRIED, "ready"), (ATOMIC_HOLDING, "held")],
    ids=["fails", "retried", "held"],
)
def test_what_it_wrote_is_refused_by_the_commit(workflow: Workflow, state: str) -> None:
    """Django's foreign keys are checked then, when the step has long returned."""

    def of_no_tenant(_: RunView) -> int:
        Pause.objects.create(workflow="refund", tenant_id=uuid4(), by="ada", reason="A test.")
        return 1

    run = advanced(ready_run(workflow, of_no_tenant))
    assert (run.state, attempts(run)) == (state, [("act", 1, "failed")])
    assert "violates foreign key constraint" in run.failure["message"]
    assert not Pause.objects.exists()
