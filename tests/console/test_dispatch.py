"""The pages of dispatch: what is stopped, by whom and why, and throwing a switch."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from django.test import Client
from django.utils.html import escape
from guardian.shortcuts import assign_perm

from reconciliation.core.facts import Dispatch
from reconciliation.models import AuditEntry, DispatchStop, Operation, Provider
from reconciliation.services.dispatch import Scope, set_dispatch
from tests.factories import (
    administrator,
    advanced,
    person,
    ready_provider,
    started_run,
    stranger,
    tenant,
)

pytestmark = pytest.mark.django_db

PAGE, CHANGE = "/dispatch/", "/dispatch/change/"
WHY = "The provider pays twice, says its status page."


@pytest.fixture
def provider() -> Provider:
    return ready_provider("payments")


@pytest.fixture
def operator(client: Client, provider: Provider) -> Client:
    """Somebody who may stop this provider, and see its tenant."""
    user = person("operator_1")
    assign_perm("workflows.view_tenant", user, tenant())
    assign_perm("reconciliation.pause_dispatch", user, provider)
    client.force_login(user)
    return client


def page_at(client: Client, url: str = PAGE) -> Any:
    answer = client.get(url)
    assert answer.status_code == HTTPStatus.OK
    return answer.context["page"]


def fields(**changes: str) -> dict[str, str]:
    given = {"provider": "payments", "tenant": "", "action": "", "state": "paused", "until": ""}
    return given | {"reason": WHY} | changes


def test_a_switch_is_thrown_and_every_page_says_by_whom_and_why(
    operator: Client, provider: Provider
) -> None:
    assert operator.get(CHANGE).status_code == HTTPStatus.OK
    assert not DispatchStop.objects.exists()
    answer = operator.post(CHANGE, fields())
    assert (answer.status_code, answer["Location"]) == (HTTPStatus.SEE_OTHER, PAGE)
    assert provider.dispatch == "paused"
    (row,) = page_at(operator).rows
    assert (row.covers, row.state, row.by, row.reason) == ("Payments", "paused", "operator_1", WHY)
    text = operator.get("/runs/").content.decode()
    assert "Dispatch of Payments is paused" in text
    assert WHY in text


@pytest.mark.parametrize("state", ["on", "paused"])
def test_a_form_that_was_opened_before_somebody_else_s_stop_does_not_end_it_unread(
    operator: Client, provider: Provider, state: str
) -> None:
    """From an old tab writes would go out again, against a reason that nobody there has read."""
    operator.post(CHANGE, fields(reason="A short test of ours, back in a minute."))
    stale = page_at(operator, f"{CHANGE}?provider=payments").seen
    set_dispatch(provider, Dispatch.OFF, administrator(), WHY, seen=stale)
    given = fields(state=state, reason="Our test is over by now.", seen=stale)
    refused = operator.post(CHANGE, given)
    assert refused.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert WHY in refused.content.decode()
    assert provider.dispatch == "off"
    now = refused.context["page"].seen
    assert operator.post(CHANGE, given | {"seen": now}).status_code == HTTPStatus.SEE_OTHER
    assert provider.dispatch == state


def test_the_longest_names_together_are_stopped_and_on_record_too(operator: Client) -> None:
    Provider.objects.update(slug="p" * 50)
    given = fields(provider="p" * 50, tenant="northwind", action="a" * 100)
    assert operator.post(CHANGE, given).status_code == HTTPStatus.SEE_OTHER
    entry = AuditEntry.objects.get(verb="set dispatch")
    assert entry.object.startswith(f"provider:{'p' * 50} tenant:")
    assert "a" * 100 in entry.detail["covers"]


def test_before_it_is_turned_on_it_says_what_would_be_sent(operator: Client) -> None:
    operator.post(CHANGE, fields())
    run = advanced(started_run())
    page = page_at(operator, f"{CHANGE}?provider=payments")
    operation = Operation.objects.get(run=run)
    assert (page.covers, page.state, page.waits) == ("Payments", "paused", 1)
    (row,) = page.rows
    assert (row.operation.text, row.next_move) == (
        operation.summary,
        "it is sent for the first time",
    )


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"reason": "no"}, "reason"),
        ({"state": ""}, "state"),
        ({"state": "perhaps"}, "state"),
        ({"provider": ""}, "provider"),
        ({"provider": "nobody"}, "provider"),
        ({"until": "soon"}, "until"),
        ({"until": "2020-01-01T00:00"}, "until"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_nothing_is_stopped(
    operator: Client, changes: dict[str, str], field: str
) -> None:
    answer = operator.post(CHANGE, fields(**changes))
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert list(answer.context["errors"]) == [field]
    assert not DispatchStop.objects.exists()
    if field != "reason":
        assert WHY in answer.content.decode()  # what was typed is still there


def test_everything_is_for_those_who_may_stop_everything(
    client: Client, provider: Provider
) -> None:
    client.force_login(administrator())
    client.post(CHANGE, fields(provider="", action="refund"))
    assert str(Scope(action="refund")) == "action refund"
    assert [row.covers for row in page_at(client).rows] == ["action refund"]


def test_who_may_stop_nothing_only_looks(client: Client, provider: Provider) -> None:
    user = person("viewer_1")
    assign_perm("workflows.view_tenant", user, tenant())
    client.force_login(user)
    set_dispatch(provider, Dispatch.OFF, administrator(), WHY)
    page = page_at(client)
    assert [row.change_url for row in page.rows] == [""]
    assert not page.may_stop
    assert client.get(CHANGE).status_code == HTTPStatus.FORBIDDEN
    assert client.post(CHANGE, fields(state="on")).status_code == HTTPStatus.FORBIDDEN
    assert DispatchStop.objects.count() == 1


def test_stops_of_other_tenants_are_not_told_of(operator: Client) -> None:
    set_dispatch(Scope(tenant=tenant("southbay")), Dispatch.OFF, administrator(), WHY)
    assert page_at(operator).rows == ()
    assert WHY not in operator.get("/runs/").content.decode()


def test_who_may_see_no_tenant_is_told_of_no_stop(client: Client, provider: Provider) -> None:
    set_dispatch(provider, Dispatch.OFF, administrator(), WHY)
    client.force_login(stranger())
    assert page_at(client).rows == ()


def test_markup_in_a_reason_is_shown_as_text(operator: Client) -> None:
    marker = "<img src=x onerror=alert(1)>"
    operator.post(CHANGE, fields(reason=marker, action=marker))
    for url in (PAGE, "/runs/", f"{CHANGE}?provider=payments"):
        text = operator.get(url).content.decode()
        assert marker not in text
    assert escape(marker) in operator.get(PAGE).content.decode()
