"""Switches of dispatch: everything, one provider, tenant or action; an end, and a slow release."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from itertools import pairwise

import pytest
from django.core.exceptions import PermissionDenied
from django.core.management import CommandError, call_command
from guardian.shortcuts import assign_perm
from pytest_django import Settings

from reconciliation.core.errors import InvalidDecision
from reconciliation.core.facts import Dispatch
from reconciliation.models import AuditEntry, DispatchStop, Operation, Provider
from reconciliation.services.dispatch import Scope, end_stops, set_dispatch
from reconciliation.services.reconcile import reconcile
from tests.destination import RunningDestination
from tests.factories import administrator, advanced, person, ready_provider, started_run, tenant
from workflows.models import Run
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db

WHY = "The provider pays twice, says its status page."


@pytest.fixture
def provider(destination: RunningDestination) -> Provider:
    return ready_provider("payments", destination.url)


def action() -> str:
    probe = advanced(started_run())
    return Operation.objects.get(run=probe).action


def stopped(scope: Scope, state: Dispatch = Dispatch.PAUSED) -> None:
    assert set_dispatch(scope, state, administrator(), WHY)


def waits(run: Run) -> bool:
    return run.state == "waiting" and run.failure["reason"] == "dispatch"


def test_everything_can_be_stopped(provider: Provider) -> None:
    stopped(Scope())
    assert waits(advanced(started_run()))


def test_a_tenant_can_be_stopped_and_others_go_on(provider: Provider) -> None:
    stopped(Scope(tenant=tenant("southbay")))
    assert advanced(started_run()).state == "completed"
    stopped(Scope(tenant=tenant()))
    assert waits(advanced(started_run()))


def test_an_action_at_a_provider_can_be_stopped_and_its_others_go_on(provider: Provider) -> None:
    named = action()
    stopped(Scope(provider, action="something.else"))
    assert advanced(started_run()).state == "completed"
    stopped(Scope(provider, action=named))
    assert waits(advanced(started_run()))


def test_of_several_switches_all_have_to_be_taken_back(provider: Provider) -> None:
    stopped(Scope())
    stopped(Scope(provider), Dispatch.OFF)
    run = advanced(started_run())
    operation = Operation.objects.get(run=run)
    for scope in (Scope(), Scope(provider)):
        assert waits(run)
        set_dispatch(scope, Dispatch.ON, administrator(), "It is mended, they say.")
        reconcile(operation.pk)
        run.refresh_from_db()
    assert run.state == "ready"


def test_a_pause_ends_by_itself_at_its_time(provider: Provider) -> None:
    soon = database_now() + timedelta(hours=1)
    assert set_dispatch(provider, Dispatch.PAUSED, administrator(), WHY, until=soon)
    run = advanced(started_run())
    assert waits(run)
    assert end_stops() == 0
    DispatchStop.objects.update(until=database_now())
    assert end_stops() == 1
    assert not DispatchStop.objects.exists()
    ended = AuditEntry.objects.filter(verb="set dispatch").latest("seq")
    assert (ended.actor, ended.detail["to"]) == ("system", "on")
    reconcile(Operation.objects.get(run=run).pk)
    assert advanced(run).state == "completed"


def test_what_waited_is_looked_at_at_a_rate(provider: Provider, settings: Settings) -> None:
    settings.ROMULUS_RELEASE_PER_SECOND = 2.0
    stopped(Scope(provider))
    runs = [advanced(started_run(order=f"ORD-{number}")) for number in range(4)]
    before = database_now()
    set_dispatch(provider, Dispatch.ON, administrator(), "It is mended, they say.")
    due = [Operation.objects.get(run=run).due_at for run in runs]
    assert all(due)
    pauses = [later - earlier for earlier, later in pairwise(due)]
    assert pauses == [timedelta(seconds=0.5)] * 3
    assert due[0] >= before


def test_only_who_has_the_right_may_throw_a_switch(provider: Provider) -> None:
    user = person("operator_1")
    with pytest.raises(PermissionDenied):
        set_dispatch(provider, Dispatch.OFF, user, WHY)
    assign_perm("reconciliation.pause_dispatch", user, provider)
    user = type(user).objects.get(pk=user.pk)
    for beyond in (Scope(), Scope(tenant=tenant()), Scope(action="refund")):
        with pytest.raises(PermissionDenied):
            set_dispatch(beyond, Dispatch.OFF, user, WHY)
    assert set_dispatch(Scope(provider, tenant()), Dispatch.OFF, user, WHY)
    assert set_dispatch(provider, Dispatch.OFF, user, WHY)


def test_an_end_in_the_past_is_refused(provider: Provider) -> None:
    with pytest.raises(InvalidDecision) as refused:
        set_dispatch(provider, Dispatch.OFF, administrator(), WHY, until=database_now())
    assert refused.value.field == "until"
    assert not DispatchStop.objects.exists()


def told(*arguments: str) -> str:
    said = StringIO()
    call_command("dispatch", *arguments, stdout=said)
    return said.getvalue()


def test_the_command_shows_and_throws_switches(provider: Provider) -> None:
    administrator()
    assert told() == "Nothing is stopped.\n"
    by = ("--by", "admin_1", "--reason", WHY)
    assert told("paused", "--provider", "payments", *by) == "Dispatch of Payments is paused.\n"
    assert told("paused", "--provider", "payments", *by).endswith("already.\n")
    assert waits(advanced(started_run()))
    (shown,) = json.loads(told("--json"))
    assert (shown["covers"], shown["state"], shown["waiting"]) == ("Payments", "paused", 1)
    assert shown["reason"] == WHY
    told("on", "--provider", "payments", *by)
    assert told() == "Nothing is stopped.\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["off", "--provider", "nobody", "--by", "admin_1"], "no provider 'nobody'"),
        (["off", "--tenant", "nobody", "--by", "admin_1"], "no tenant 'nobody'"),
        (["off", "--by", "nobody"], "no active account"),
        (["off"], "--by"),
        (["off", "--by", "admin_1", "--reason", "no"], "--reason"),
    ],
)
def test_the_command_says_what_is_wrong(arguments: list[str], said: str) -> None:
    administrator()
    with pytest.raises(CommandError, match=said):
        told(*arguments)
    assert not DispatchStop.objects.exists()
