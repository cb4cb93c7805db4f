"""A person's *replace* and *undo*: one more operation, opened by the run's own write step."""

from __future__ import annotations

from unittest.mock import ANY

import pytest
from django.db import IntegrityError, transaction

from reconciliation.core.errors import NotAllowed
from reconciliation.core.states import DecisionKind
from reconciliation.models import Hold, Operation
from tests.deciding import TRY_AGAIN, decide, states
from tests.destination import RunningDestination
from tests.factories import (
    advanced,
    open_hold_of,
    quick_contract,
    ready_provider,
    settled,
    started_run,
    switched,
)
from tests.undoing import age_sends, begun, chain_of, goes_on, undoable
from workflows.core.definitions import Workflow
from workflows.examples.ticket_triage import ticket_triage
from workflows.models import Run
from workflows.services.claims import claim_run
from workflows.services.ownership import Keeper
from workflows.services.results import result_of
from workflows.services.stopping import cancel_run

pytestmark = pytest.mark.django_db

REPLACE, UNDO = DecisionKind.REPLACE, DecisionKind.UNDO


@pytest.fixture
def lost(destination: RunningDestination) -> Hold:
    """A comment that never arrived, at a desk with neither key nor look-up; sent long ago."""
    reversible = quick_contract("blind", irreversible=False)
    ready_provider("desk", destination.url, contract_version=reversible)
    destination.client.arm("drop_before")
    operation = Operation.objects.get(run=advanced(started_run("ticket_triage")))
    age_sends(operation)
    return open_hold_of(operation)


def wrong(destination: RunningDestination, flow: Workflow = undoable, **input: str) -> Hold:
    """A machine that was made, and is not as it should be."""
    ready_provider("machines", destination.url)
    destination.client.arm("postcondition")
    run = advanced(begun(flow, **input))
    operation = Operation.objects.get(run=run)
    assert (run.state, operation.state) == ("held", "postcondition_failed")
    return open_hold_of(operation)


# --- replace ----------------------------------------------------------------------------------


def test_a_replacement_is_a_new_identity_for_the_same_write(
    lost: Hold, destination: RunningDestination
) -> None:
    decide(lost, REPLACE)
    assert states(lost) == ("decided", "abandoned", "ready")
    run = advanced(lost.held_run)
    old, new = chain_of(run)
    assert run.state == "completed"
    assert (old.state, new.state) == ("abandoned", "verified")
    assert (new.supersedes, new.compensates, new.effect) == (old, None, "default~2")
    assert new.idempotency_key != old.idempotency_key
    assert (new.summary, new.parameters_digest) == (old.summary, old.parameters_digest)
    assert new.receipt["operation"] == str(new.pk)
    assert len(destination.client.effects()) == 1
    assert f"noted as {new.resource}" in result_of(run)


def test_nothing_is_replaced_twice_whatever_two_workers_do(lost: Hold) -> None:
    decide(lost, REPLACE)
    run = advanced(lost.held_run)
    _, new = chain_of(run)
    with pytest.raises(IntegrityError, match="operation_replaced_once"), transaction.atomic():
        Operation.objects.create(
            **{
                field.name: getattr(new, field.name)
                for field in Operation._meta.concrete_fields
                if field.name not in ("id", "effect", "idempotency_key")
            },
            effect="default~3",
            idempotency_key="another",
        )


def test_a_replacement_goes_through_dispatch_like_any_write(
    lost: Hold, destination: RunningDestination
) -> None:
    assert lost.operation is not None
    decide(lost, REPLACE)
    switched(lost.operation.provider, "paused")
    run = advanced(lost.held_run)
    assert (run.state, chain_of(run)[1].state) == ("waiting", "intended")
    assert not destination.client.effects()


def test_a_replacement_that_is_lost_too_is_held_again_and_replaced_again(
    lost: Hold, destination: RunningDestination
) -> None:
    decide(lost, REPLACE)
    destination.client.arm("drop_before")
    run = advanced(lost.held_run)
    assert run.state == "held"
    age_sends(chain_of(run)[1])
    decide(open_hold_of(chain_of(run)[1]), REPLACE)
    run = advanced(run)
    assert (run.state, [each.effect for each in chain_of(run)]) == (
        "completed",
        ["default", "default~2", "default~3"],
    )


def test_an_author_s_code_that_means_something_else_now_sends_nothing(
    lost: Hold, destination: RunningDestination, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What goes out is what the person has seen and decided on."""
    decide(lost, REPLACE)
    step = ticket_triage.steps["note_in_desk"]
    meant = step.function
    other = {"ticket": "T-17", "body": "Something else."}

    def changed(run: object) -> object:
        intent = meant(run)
        return type(intent)(intent.action, intent.target, other, intent.summary)

    monkeypatch.setitem(
        ticket_triage.steps,
        "note_in_desk",
        type(step)(
            **{name: getattr(step, name) for name in step.__slots__} | {"function": changed}
        ),
    )
    run = advanced(lost.held_run)
    assert (run.state, run.failure["reason"]) == ("held", "intent_changed")
    assert len(chain_of(run)) == 1
    assert not destination.client.effects()
    monkeypatch.undo()
    decide(Hold.objects.get(run=run, state="open"), TRY_AGAIN)
    assert advanced(run).state == "completed"


def test_a_worker_that_dies_before_it_opens_the_replacement_leaves_it_to_the_next(
    lost: Hold, destination: RunningDestination
) -> None:
    decide(lost, REPLACE)
    assert claim_run(lost.held_run.pk, Keeper().worker) is not None  # and is not heard of again
    Run.objects.filter(pk=lost.run_id).update(lease_expires_at="2001-01-01T00:00Z")
    run = advanced(lost.held_run)
    assert (run.state, len(chain_of(run))) == ("completed", 2)
    assert len(destination.client.effects()) == 1


def test_what_cannot_be_called_back_is_never_replaced(hold: Hold) -> None:
    age_sends(hold.operation)
    with pytest.raises(NotAllowed, match="cannot be called back"):
        decide(hold, REPLACE)
    assert states(hold) == ("open", "held", "held")


def test_a_run_that_is_cancelled_before_its_replacement_is_opened_sends_nothing(
    lost: Hold, destination: RunningDestination
) -> None:
    decide(lost, REPLACE)
    cancel_run(lost.held_run.pk, by="user:1 ada", reason="Not needed any more.")
    run = advanced(lost.held_run)
    assert (run.state, len(chain_of(run))) == ("cancelled", 1)
    assert not destination.client.effects()


# --- undo -------------------------------------------------------------------------------------


def test_an_undo_is_an_operation_of_its_own_and_the_run_then_ends_as_after_abandoning(
    destination: RunningDestination,
) -> None:
    hold = wrong(destination)
    decide(hold, UNDO)
    assert states(hold) == ("decided", "abandoned", "ready")
    run = advanced(hold.held_run)
    old, undo = chain_of(run)
    assert (run.state, run.failure["reason"]) == ("failed", "undone")
    assert (old.state, undo.state) == ("abandoned", "verified")
    assert (undo.compensates, undo.supersedes) == (old, None)
    assert undo.summary.startswith("Create machine tombstone-of-")
    assert len(destination.client.effects()) == 2


def test_after_an_undo_the_run_goes_on_without_it_where_its_author_says_so(
    destination: RunningDestination,
) -> None:
    hold = wrong(destination, goes_on)
    decide(hold, UNDO)
    run = advanced(hold.held_run)
    assert (run.state, result_of(run)) == ("completed", "made none")


def test_an_undo_that_the_provider_refuses_is_never_a_silent_end(
    destination: RunningDestination,
) -> None:
    hold = wrong(destination)
    destination.client.arm("error_before", status=400)
    decide(hold, UNDO)
    run = advanced(hold.held_run)
    assert (run.state, run.failure) == ("held", {"reason": "undo_refused", "message": ANY})
    assert "still there" in run.failure["message"]
    held = Hold.objects.get(run=run, state="open")
    with pytest.raises(NotAllowed, match="refused again"):
        decide(held, TRY_AGAIN)


def test_an_undo_whose_answer_is_lost_is_looked_up_like_any_write(
    destination: RunningDestination,
) -> None:
    hold = wrong(destination)
    decide(hold, UNDO)
    destination.client.arm("apply_then_drop")
    run = advanced(hold.held_run)
    assert (run.state, run.failure["reason"]) == ("failed", "undone")
    assert len(destination.client.effects()) == 2


def test_an_undo_that_its_author_s_code_cannot_make_is_held(
    destination: RunningDestination,
) -> None:
    hold = wrong(destination, broken="yes")
    decide(hold, UNDO)
    run = advanced(hold.held_run)
    assert (run.state, run.failure["reason"], len(chain_of(run))) == ("held", "step_failed", 1)


def test_without_a_declared_undo_it_is_not_offered(destination: RunningDestination) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm("postcondition")
    operation = Operation.objects.get(run=advanced(started_run("replacement_worker")))
    with pytest.raises(NotAllowed, match="says no way to undo it"):
        decide(open_hold_of(operation), UNDO)


def test_what_is_not_proven_to_have_happened_is_not_undone(
    destination: RunningDestination,
) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm("lookup_unavailable", times=None)
    destination.client.arm("drop_before")
    run = settled(begun(undoable))
    with pytest.raises(NotAllowed, match="Nothing of it is proven"):
        decide(Hold.objects.get(run=run), UNDO)
