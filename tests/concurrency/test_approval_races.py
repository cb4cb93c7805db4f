"""Two at once about one proposal: one answer settles it, one write uses it."""

from __future__ import annotations

from functools import partial
from uuid import uuid4

import pytest

from reconciliation.models import Operation
from tests.approving import answered, approver, policy, proposed
from tests.destination import RunningDestination
from tests.factories import advanced, ready_provider
from tests.racing import at_once
from tests.sending import effects
from workflows.core.errors import ProposalIsOver
from workflows.core.proposals import Answer
from workflows.models import Approval, AuthorisationRecord, Event
from workflows.services.answers import Given, answer

pytestmark = pytest.mark.usefixtures("committed_db")

REPEATS = 8


def test_of_two_answers_at_the_same_moment_one_settles_it(
    destination: RunningDestination,
) -> None:
    """A21: the other is told, and is never recorded as if it had counted."""
    ready_provider("payments", destination.url)
    first, second = approver("first_1"), approver("second_1")
    for number in range(REPEATS):
        run, proposal = proposed(order=f"ORD-{number}")
        given = at_once(
            partial(answered, proposal, first, Answer.APPROVE),
            partial(answered, proposal, second, Answer.DENY),
        )
        (recorded,) = Approval.objects.filter(proposal=proposal)
        (told,) = (each for each in given if isinstance(each, Exception))
        assert isinstance(told, ProposalIsOver), told
        assert advanced(run).state == ("completed" if recorded.answer == "approve" else "failed")
    approvals = Approval.objects.filter(answer="approve").count()
    assert effects(destination) == approvals


def test_two_clicks_at_the_same_moment_answer_once(destination: RunningDestination) -> None:
    """A20."""
    ready_provider("payments", destination.url)
    run, proposal = proposed()
    given = Given(Answer.APPROVE, proposal.parameters_digest, uuid4())
    got = at_once(*[partial(answer, proposal.pk, approver(), given)] * 4)
    assert got == [Approval.objects.get()] * 4
    assert Event.objects.count() == 1
    assert advanced(run).state == "completed"
    assert effects(destination) == 1


def test_a_policy_that_is_changed_while_a_write_begins_counts_for_it_or_comes_after_it(
    destination: RunningDestination,
) -> None:
    """When the change is committed, no write that the old policy allowed is still to begin."""
    ready_provider("payments", destination.url)
    for number in range(REPEATS):
        policy()
        run, proposal = proposed(order=f"ORD-{number}")
        answered(proposal, approver())
        at_once(partial(advanced, run), partial(policy, grants=[]))
        run.refresh_from_db()
        row = AuthorisationRecord.objects.filter(asked="write", proposal=proposal).get()
        sent = Operation.objects.filter(run=run, first_sent_at__isnull=False).exists()
        assert sent is row.allowed, run.failure
        assert run.state == ("completed" if row.allowed else "held")
