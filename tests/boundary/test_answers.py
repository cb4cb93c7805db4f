"""How answers arrive and what they are bound to: the console's, other systems', and forged ones."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import DatabaseError, connection, transaction

from tests.approving import aged, answered, approver, policy, proposal_of, proposed
from tests.destination import RunningDestination
from tests.events import delivered, source
from tests.factories import advanced, person, started_run, tenant
from tests.sending import effects
from workflows.core.errors import NotEntitled, ProposalIsOver, UsageError
from workflows.core.proposals import APPROVAL_EVENT, Answer
from workflows.models import (
    Approval,
    AuthorisationRecord,
    PolicyVersion,
    Proposal,
    Run,
    ServiceAccount,
    Wait,
)
from workflows.services.answers import Given, answer, source_of
from workflows.services.stopping import cancel_run
from workflows.services.sweep import wake_due_runs

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("payments")]


def event_of(proposal: Proposal, of: Any, **said: Any) -> None:
    """Another system answers: an event of one of its sources."""
    data = {"answer": "approve", "digest": proposal.parameters_digest, "by": "j.doe"} | said
    delivered(str(proposal.pk), type=APPROVAL_EVENT, of=of, payload={"data": data})


ITSM = {"actions": ["refunds.*"], "groups": ["finance"], "sources": ["itsm"]}


def test_a_system_that_the_policy_names_approves_by_an_event(payments: RunningDestination) -> None:
    policy(approvals=[ITSM])
    run, proposal = proposed()
    event_of(proposal, source("itsm"))
    assert advanced(run).state == "completed"
    assert effects(payments) == 1
    (row,) = Approval.objects.all()
    assert (row.subject, row.by_name, row.by) == ("source:itsm", "j.doe (itsm)", None)


@pytest.mark.parametrize(
    ("of", "said"),
    [
        ("another", {}),
        ("itsm", {"digest": "00000000:00"}),
        ("itsm", {"answer": "perhaps"}),
        ("itsm", {"answer": "deny", "digest": "00000000:00"}),
        ("another", {"answer": "deny"}),
    ],
)
def test_what_is_no_answer_of_such_a_system_changes_nothing(
    payments: RunningDestination, of: str, said: dict[str, Any]
) -> None:
    policy(approvals=[ITSM])
    run, proposal = proposed()
    event_of(proposal, source(of), **said)
    run = advanced(run)
    proposal.refresh_from_db()
    assert (run.state, proposal.state, effects(payments)) == ("waiting", "open", 0)
    # It waits on, and is settled by whoever may.
    assert Wait.objects.filter(run=run, state="waiting").count() == 1
    answered(proposal, approver("fin_1", "finance"))
    assert advanced(run).state == "completed"


def test_without_a_policy_no_other_system_approves(payments: RunningDestination) -> None:
    run, proposal = proposed()
    event_of(proposal, source("itsm"))
    assert (advanced(run).state, effects(payments)) == ("waiting", 0)
    assert not Approval.objects.exists()


def test_an_event_that_nobodys_answer_stands_behind_proves_nothing(
    payments: RunningDestination,
) -> None:
    run, proposal = proposed()
    event_of(proposal, source_of(tenant()))
    assert (advanced(run).state, effects(payments)) == ("waiting", 0)
    answered(proposal, approver())
    assert advanced(run).state == "completed"


def test_the_console_answers_by_an_event_of_its_own(payments: RunningDestination) -> None:
    run, proposal = proposed()
    answered(proposal, approver())
    wait = Wait.objects.get(run=run)
    match = wait.matches.get()
    assert (wait.state, match.event.source) == ("resolved", source_of(tenant()))
    assert match.event.correlation == str(proposal.pk)


def test_the_same_form_twice_answers_once_and_another_action_is_refused() -> None:
    _, proposal = proposed()
    user, token = approver(), uuid4()
    given = Given(Answer.APPROVE, proposal.parameters_digest, token)
    assert answer(proposal.pk, user, given) == answer(proposal.pk, user, given)
    other = proposed(order="ORD-7002")[1]
    with pytest.raises(UsageError, match="not what is proposed"):
        answer(other.pk, user, Given(Answer.APPROVE, proposal.parameters_digest, uuid4()))
    with pytest.raises(UsageError, match="another answer"):
        answer(other.pk, user, Given(Answer.APPROVE, other.parameters_digest, token))


def test_who_has_no_right_answers_nothing() -> None:
    _, proposal = proposed()
    for kind in (Answer.APPROVE, Answer.DENY, Answer.WITHDRAW):
        with pytest.raises(NotEntitled, match="not answer it"):
            answered(proposal, person("nobody_1"), kind)
    with pytest.raises(NotEntitled, match="no approval here"):
        answered(proposal, approver(), Answer.WITHDRAW)


def test_nobody_settles_it_in_time(payments: RunningDestination) -> None:
    run, proposal = proposed()
    aged(proposal, timedelta(hours=25))
    with pytest.raises(ProposalIsOver, match="time is over"):
        answered(proposal, approver())
    with connection.cursor() as cursor:
        cursor.execute("UPDATE workflows_wait SET deadline = deadline - interval '25 hours'")
    Run.objects.filter(pk=run.pk).update(wake_at=proposal.created_at)
    wake_due_runs()
    run = advanced(run)
    proposal.refresh_from_db()
    assert (run.state, run.failure["reason"], proposal.state) == ("held", "expired", "expired")


def test_a_run_that_is_cancelled_asks_nobody_any_more() -> None:
    run, proposal = proposed()
    cancel_run(run.pk, by="user:1 ada", reason="Not needed any more.")
    advanced(run)
    proposal.refresh_from_db()
    assert proposal.state == "cancelled"
    with pytest.raises(ProposalIsOver, match="cancelled"):
        answered(proposal, approver())


def test_an_approval_that_was_used_is_not_taken_back(payments: RunningDestination) -> None:
    run, proposal = proposed()
    user = approver()
    answered(proposal, user)
    assert advanced(run).state == "completed"
    with pytest.raises(ProposalIsOver, match="used already"):
        answered(proposal, user, Answer.WITHDRAW)


def test_what_the_policy_would_never_allow_is_not_even_asked(
    payments: RunningDestination,
) -> None:
    policy(grants=[])
    run = advanced(started_run("approved_refund"))
    assert run.state == "held"
    assert "Nobody was asked: No grant lets workflow approved_refund" in run.failure["message"]
    assert not Proposal.objects.exists()
    row = AuthorisationRecord.objects.get()
    assert (row.asked, row.allowed, row.failed) == ("proposal", False, "grant")


def test_an_agent_that_is_switched_off_before_the_write(payments: RunningDestination) -> None:
    policy(grants=[{"subjects": ["agent:refund-bot"], "actions": ["refunds.*"]}])
    bot = ServiceAccount.objects.create(
        kind="agent", slug="refund-bot", name="Refund bot", owner=person("owner_1")
    )
    run, proposal = proposed(agent="refund-bot")
    assert proposal.proposed_by == "agent:refund-bot"
    answered(proposal, approver())
    ServiceAccount.objects.filter(pk=bot.pk).update(active=False)
    assert (advanced(run).state, effects(payments)) == ("held", 0)
    row = AuthorisationRecord.objects.filter(asked="write").get()
    assert (row.subject, row.failed) == ("agent:refund-bot", "subject")


def test_the_record_of_the_boundary_is_only_added_to(payments: RunningDestination) -> None:
    policy()
    run, proposal = proposed()
    answered(proposal, approver())
    advanced(run)
    for model in (PolicyVersion, Proposal, Approval, AuthorisationRecord):
        table = model._meta.db_table
        assert model._default_manager.exists(), model
        for statement in (
            f"DELETE FROM {table}",  # noqa: S608 (the tests' own words)
            f"TRUNCATE {table} CASCADE",
            f"UPDATE {table} SET id = gen_random_uuid()",  # noqa: S608
        ):
            with (
                pytest.raises(DatabaseError, match=r"append-only|does not change|pending trigger"),
                transaction.atomic(),
                connection.cursor() as cursor,
            ):
                cursor.execute(statement)
    for change in ({"state": "open", "ended_at": None}, {"used_by": None, "used_at": None}):
        with (
            pytest.raises(DatabaseError, match=r"does not change|counts once"),
            transaction.atomic(),
        ):
            Proposal.objects.update(**change)
    assert proposal_of(run).used_by is not None
