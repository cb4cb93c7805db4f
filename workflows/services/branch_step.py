"""The `branch` kind: the author's function names the step that comes next."""

from __future__ import annotations

from workflows.core.errors import UsageError
from workflows.services.claims import Claim
from workflows.services.failures import call
from workflows.services.kinds import Done, Result, fail_or_hold
from workflows.services.run_view import RunView


def execute_branch(claim: Claim, view: RunView) -> Result:
    """Ask where to go. A run that has come here too often is going round in a loop."""
    step = claim.step
    if claim.visit > step.max_visits:
        return fail_or_hold(
            claim,
            "loop_limit",
            f"The run came to {step.name} {claim.visit:,} times, and {step.max_visits:,} are "
            "allowed: it may be going round in a loop.",
        )
    value, problem = call(claim, view)
    if problem is not None:
        return problem
    try:
        claim.workflow.target(step.name, value)
    except UsageError as error:
        return fail_or_hold(claim, "no_such_branch", str(error))
    return Done(str(value), goto=str(value))
