"""Leases: renewed for a whole process at once, never past a step's own time, never for nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.db.models import F
from django.db.models.functions import Now
from pytest_django import Settings

from reconciliation.models import Transmission
from reconciliation.services.ledger import ensure_held
from tests.claiming import commit, moment
from tests.factories import ready_provider, started_run, tenant
from tests.statements import statements
from workflows.core.definitions import Workflow
from workflows.core.errors import LostOwnership
from workflows.models import Run, Worker
from workflows.registry import registry
from workflows.services.claims import Claim, claim_run
from workflows.services.clock import database_now
from workflows.services.executor import advance, take_step
from workflows.services.ownership import Keeper
from workflows.services.run_view import RunView
from workflows.services.runs import start

pytestmark = pytest.mark.django_db

leased = Workflow("tests.leased")
broken: list[Exception] = []


@leased.step(timeout=timedelta(minutes=5))
def work(run: RunView) -> int:
    if broken:
        raise broken.pop()
    return 1


@leased.step(timeout=timedelta(minutes=5))
def work_on(run: RunView) -> int:
    return 2


@pytest.fixture(autouse=True)
def known() -> None:
    registry.add(leased)
    broken.clear()


def claimed(keeper: Keeper) -> Claim:
    """A claim whose step a thread of `keeper` works on."""
    run = start("tests.leased", {}, tenant=tenant())
    claim = claim_run(run.pk, keeper.worker)
    assert claim is not None
    keeper.begin(claim.attempt, claim.step.timeout.total_seconds())
    return claim


def age_lease(claim: Claim, seconds: float) -> None:
    """Let the lease end `seconds` from now."""
    Run.objects.filter(pk=claim.run).update(lease_expires_at=Now() + timedelta(seconds=seconds))


def lease_left(claim: Claim) -> float:
    """Seconds until the lease ends."""
    run = Run.objects.get(pk=claim.run)
    assert run.lease_expires_at is not None
    return (run.lease_expires_at - database_now()).total_seconds()


# --- renewing ---------------------------------------------------------------------------------


def test_all_leases_of_a_process_are_renewed_by_one_statement(settings: Settings) -> None:
    keeper = Keeper()
    claims = [claimed(keeper) for _ in range(5)]
    for claim in claims:
        age_lease(claim, 1)
    with statements() as sent:
        keeper.renew()
    assert sum("UPDATE workflows_run" in statement for statement in sent) == 1
    assert len(sent) == 2  # and one that tells that the process lives
    assert all(lease_left(claim) > settings.ROMULUS_LEASE_SECONDS - 1 for claim in claims)


def test_a_process_renews_no_lease_of_another() -> None:
    keeper, other = Keeper(), Keeper()
    claim = claimed(other)
    age_lease(claim, 1)
    keeper.renew()
    assert lease_left(claim) < 1.5


def test_renewing_tells_that_the_process_lives() -> None:
    keeper = Keeper()
    Worker.objects.filter(pk=keeper.worker).update(seen_at=Now() - timedelta(hours=1))
    keeper.renew()
    assert Worker.objects.get(pk=keeper.worker).seen_at > database_now() - timedelta(seconds=5)


def test_a_lease_is_never_renewed_past_the_step_s_own_time() -> None:
    keeper = Keeper()
    claim = claimed(keeper)
    Run.objects.filter(pk=claim.run).update(timeout_at=Now() + timedelta(seconds=3))
    keeper.renew()
    assert 1 < lease_left(claim) < 3.5


def test_a_hung_step_is_left_to_its_lease_and_replaced() -> None:
    keeper = Keeper()
    claim = claimed(keeper)
    Run.objects.filter(pk=claim.run).update(timeout_at=Now() - timedelta(seconds=1))
    age_lease(claim, -1)
    keeper.renew()
    assert lease_left(claim) < 0
    following = claim_run(claim.run, Keeper().worker)
    assert following is not None
    assert following.losses == 1


@pytest.mark.parametrize(("timeout", "lease"), [(300, 15), (2.5, 2.5)])
def test_each_step_has_its_own_time_and_no_lease_goes_past_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, timeout: float, lease: float
) -> None:
    settings.ROMULUS_LEASE_SECONDS = 15.0
    keeper = Keeper()
    claim = claimed(keeper)
    Run.objects.filter(pk=claim.run).update(timeout_at=Now() + timedelta(seconds=3))
    timed = replace(leased.steps["work_on"], timeout=timedelta(seconds=timeout))
    monkeypatch.setitem(leased.steps, "work_on", timed)
    following = commit(claim, 1)
    assert following is not None
    run = Run.objects.get(pk=claim.run)
    assert run.timeout_at is not None
    assert run.lease_expires_at is not None
    assert run.timeout_at - moment(following) == timedelta(seconds=timeout)
    assert run.lease_expires_at - moment(following) == timedelta(seconds=lease)


def test_a_lease_that_was_taken_over_is_not_renewed_by_its_earlier_holder() -> None:
    """A10: the heartbeat of the one that woke up does not touch the other's lease."""
    keeper, other = Keeper(), Keeper()
    claim = claimed(keeper)
    age_lease(claim, -1)
    assert claim_run(claim.run, other.worker)
    age_lease(claim, 2)
    keeper.renew()
    assert 0 < lease_left(claim) < 2.5


@pytest.mark.parametrize("state", ["ready", "waiting", "held", "completed"])
def test_a_run_that_nobody_holds_has_no_lease_to_renew(state: str) -> None:
    keeper = Keeper()
    claim = claimed(keeper)
    Run.objects.filter(pk=claim.run).update(
        state=state,
        lease_owner=None,
        lease_expires_at=None,
        finished_at=Now() if state == "completed" else None,
    )
    keeper.renew()
    assert Run.objects.get(pk=claim.run).lease_expires_at is None


# --- for nothing ------------------------------------------------------------------------------


def outage(keeper: Keeper) -> Claim:
    """The database was away while the step worked; its process lives on."""
    broken.append(OperationalError("the connection is closed"))
    claim = claimed(keeper)
    with pytest.raises(OperationalError):
        take_step(claim, keeper)
    return claim


def lost_unnoticed(keeper: Keeper) -> Claim:
    """The lease ran out before the send, and nobody has taken it over yet."""
    ready_provider("payments")
    run = started_run("refund")
    first = claim_run(run.pk, keeper.worker)
    assert first is not None
    claim = commit(first, {"number": "ORD-7001", "refundable": "125.00"})
    assert claim is not None
    age_lease(claim, -1)
    assert take_step(claim, keeper) is None
    assert not Transmission.objects.exists()
    return claim


@pytest.mark.usefixtures("lost_session")
@pytest.mark.parametrize("given_up", [outage, lost_unnoticed])
def test_an_attempt_that_its_process_has_given_up_is_left_to_its_lease(
    given_up: Callable[[Keeper], Claim],
) -> None:
    """A14, A17: taken over within a lease and a sweep, without a restart of the worker."""
    keeper = Keeper()
    claim = given_up(keeper)
    age_lease(claim, -1)
    keeper.renew()
    assert lease_left(claim) < 0


# --- the process -----------------------------------------------------------------------------


def test_a_run_goes_on_under_the_lease_of_its_process_step_by_step() -> None:
    keeper = Keeper()
    run = start("tests.leased", {}, tenant=tenant())
    advance(run.pk, keeper)
    owners = set(run.attempts.values_list("worker", flat=True))
    assert owners == {keeper.worker}
    assert run.attempts.filter(claimed_at__lte=F("ended_at")).count() == 2


def test_a_send_needs_a_lease_that_has_not_run_out() -> None:
    """Promise P2 at the last moment before a byte leaves."""
    keeper = Keeper()
    claim = lost_unnoticed(keeper)
    assert Run.objects.get(pk=claim.run).state == "running"
    with pytest.raises(LostOwnership):
        ensure_held(claim)
