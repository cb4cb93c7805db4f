"""Cancelling, pausing and resuming a run in the console: who may, what is asked, who was first."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse
from guardian.shortcuts import assign_perm

from reconciliation.models import AuditEntry, Operation
from tests.claiming import claimed, ready_run
from tests.console.posting import HTMX
from tests.destination import RunningDestination
from tests.factories import (
    held_operation,
    many_runs,
    person,
    ready_provider,
    started_run,
    stranger,
    tenant,
)
from tests.flows import batch, driven
from workflows.models import Run, Tenant
from workflows.pages import Confirmation, RunPage
from workflows.services.stopping import cancel_run, pause_run, resume_run

pytestmark = pytest.mark.django_db

CONTROLS = ("cancel", "pause", "resume")
WHY = "The auditor is here."


def operator(name: str = "operator_1") -> Any:
    """Somebody who may see and control the tenant's runs."""
    user = person(name)
    for right in ("view_tenant", "control_runs"):
        assign_perm(f"workflows.{right}", user, tenant())
    return get_user_model().objects.get(pk=user.pk)


def viewer(name: str = "viewer_1") -> Any:
    """Somebody who may see the tenant's runs with their payloads, and no more."""
    user = person(name)
    for right in ("view_tenant", "view_payloads"):
        assign_perm(f"workflows.{right}", user, tenant())
    return get_user_model().objects.get(pk=user.pk)


def signed_in(user: Any, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(user)
    return client


@pytest.fixture(autouse=True)
def operating(client: Client) -> None:
    client.force_login(operator())


def url_of(run: Run, control: str = "") -> str:
    return reverse(f"run_{control}" if control else "run", args=[run.pk])


def page_at(client: Client, run: Run) -> RunPage:
    page: RunPage = client.get(url_of(run)).context["page"]
    return page


def asked(client: Client, run: Run, control: str) -> Confirmation:
    answer = client.get(url_of(run, control))
    assert answer.status_code == HTTPStatus.OK
    question: Confirmation = answer.context["page"]
    return question


def post(client: Client, run: Run, control: str, reason: str = WHY, *, htmx: bool = False) -> Any:
    return client.post(url_of(run, control), {"reason": reason}, headers=HTMX if htmx else {})


def wishes(run: Run) -> tuple[bool, bool]:
    """Whether the run's end was asked for, and whether it is paused."""
    run.refresh_from_db()
    return (run.cancel_asked_at is not None, run.paused_at is not None)


# --- who may ----------------------------------------------------------------------------------


def test_only_who_may_control_runs_is_offered_to(client: Client) -> None:
    run = started_run()
    assert [each.name for each in page_at(client, run).controls] == ["pause", "cancel"]
    text = client.get(url_of(run)).content.decode()
    assert url_of(run, "cancel") in text
    assert 'id="confirm"' in text
    looks = signed_in(viewer())
    assert page_at(looks, run).controls == ()
    text = looks.get(url_of(run)).content.decode()
    assert url_of(run, "cancel") not in text
    assert 'id="confirm"' not in text


@pytest.mark.parametrize("control", CONTROLS)
def test_without_the_right_there_is_nothing_there(control: str) -> None:
    run = started_run()
    pause_run(run.pk, by="user:3 ada")
    for user in (viewer(), stranger()):
        client = signed_in(user)
        for answer in (client.get(url_of(run, control)), post(client, run, control)):
            assert answer.status_code == HTTPStatus.NOT_FOUND
    assert wishes(run) == (False, True)


@pytest.mark.parametrize("control", CONTROLS)
def test_the_right_is_for_one_tenant_alone(client: Client, control: str) -> None:
    elsewhere = Tenant.objects.create(slug="south", name="South")
    assign_perm("workflows.view_tenant", operator(), elsewhere)
    (run,) = many_runs(1, "ready", tenant=elsewhere)
    assert post(client, run, control).status_code == HTTPStatus.NOT_FOUND
    assert wishes(run) == (False, False)


def test_the_right_to_control_without_the_right_to_see_is_none() -> None:
    user = person("blind_1")
    assign_perm("workflows.control_runs", user, tenant())
    run = started_run()
    client = signed_in(user)
    assert post(client, run, "cancel").status_code == HTTPStatus.NOT_FOUND
    assert wishes(run) == (False, False)


@pytest.mark.parametrize("control", CONTROLS)
def test_who_is_not_signed_in_is_sent_to_the_login_page(control: str) -> None:
    run = started_run()
    answer = post(Client(), run, control)
    assert answer.status_code == HTTPStatus.FOUND
    assert answer["Location"].startswith(reverse("login"))
    assert wishes(run) == (False, False)


# --- how it is done ---------------------------------------------------------------------------


@pytest.mark.parametrize("control", CONTROLS)
def test_asking_changes_nothing(client: Client, control: str) -> None:
    run = started_run()
    if control == "resume":
        pause_run(run.pk, by="user:3 ada")
    before = Run.objects.values().get(pk=run.pk)
    assert client.get(url_of(run, control)).status_code == HTTPStatus.OK
    assert client.get(f"{url_of(run, control)}?reason={WHY}").status_code == HTTPStatus.OK
    assert client.head(url_of(run, control)).status_code == HTTPStatus.OK
    for method in (client.put, client.delete, client.patch):
        assert method(url_of(run, control)).status_code == HTTPStatus.METHOD_NOT_ALLOWED
    assert Run.objects.values().get(pk=run.pk) == before


@pytest.mark.parametrize("control", CONTROLS)
def test_a_post_without_its_token_is_refused(control: str) -> None:
    run = started_run()
    client = signed_in(operator(), enforce_csrf_checks=True)
    assert post(client, run, control).status_code == HTTPStatus.FORBIDDEN
    assert wishes(run) == (False, False)


def test_a_run_is_paused_and_resumed_with_a_reason_on_record(client: Client) -> None:
    run = started_run()
    answer = post(client, run, "pause")
    assert (answer.status_code, answer["Location"]) == (HTTPStatus.SEE_OTHER, url_of(run))
    assert wishes(run) == (False, True)
    page = page_at(client, run)
    assert [each.name for each in page.controls] == ["resume", "cancel"]
    assert page.marks[0].text == "Paused by operator_1"
    assert WHY in page.why.lead
    assert post(client, run, "resume", "He is gone.").status_code == HTTPStatus.SEE_OTHER
    assert wishes(run) == (False, False)
    entries = AuditEntry.objects.filter(object=f"run:{run.pk}").order_by("seq")
    actor = f"user:{operator().pk} operator_1"
    assert [(entry.actor, entry.verb, entry.detail["reason"]) for entry in entries] == [
        (actor, "run paused", WHY),
        (actor, "run resumed", "He is gone."),
    ]


def test_a_run_is_cancelled_with_a_reason_on_record(client: Client) -> None:
    run = started_run()
    assert post(client, run, "cancel").status_code == HTTPStatus.SEE_OTHER
    page = page_at(client, run)
    assert (page.state, page.controls) == ("cancelled", ())
    assert (f"Its end was asked for: {WHY}", "operator_1") in [
        (entry.text, entry.by) for entry in page.log
    ]


def test_htmx_is_sent_to_the_run_as_it_is_now(client: Client) -> None:
    run = started_run()
    answer = post(client, run, "pause", htmx=True)
    assert (answer.status_code, answer["HX-Redirect"]) == (HTTPStatus.NO_CONTENT, url_of(run))


@pytest.mark.parametrize("htmx", [False, True])
@pytest.mark.parametrize("reason", ["", "   ", "x" * 501, "a\x00b"])
def test_without_a_reason_that_can_be_kept_nothing_is_done(
    client: Client, reason: str, htmx: bool
) -> None:
    run = started_run()
    answer = post(client, run, "cancel", reason, htmx=htmx)
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert wishes(run) == (False, False)
    text = answer.content.decode()
    assert ("<html" in text) == (not htmx)
    assert 'aria-invalid="true"' in text
    assert answer.context["page"].errors["reason"]
    assert answer.context["page"].reason == reason.strip()


def test_htmx_is_asked_with_the_question_alone(client: Client) -> None:
    answer = client.get(url_of(started_run(), "cancel"), headers=HTMX | {"HX-Target": "confirm"})
    text = answer.content.decode()
    assert "<html" not in text
    assert "csrfmiddlewaretoken" in text
    assert "Cancel this run?" in text


# --- what is read before ----------------------------------------------------------------------


def test_a_write_whose_outcome_is_open_is_said_to_be_settled_first(
    client: Client, destination: RunningDestination
) -> None:
    ready_provider("desk", destination.url)
    run = held_operation(destination).run
    question = asked(client, run, "cancel")
    summary = Operation.objects.get().summary
    assert question.happens[0].startswith(f"The outcome of “{summary}” is open. It is settled fir")
    assert question.grave
    assert post(client, run, "cancel").status_code == HTTPStatus.SEE_OTHER
    page = page_at(client, run)
    assert (page.state, page.controls) == ("held", ())
    assert page.marks[0].text == "Cancel asked by operator_1"
    assert "First it has to be settled what became of" in page.why.text


def test_what_stops_and_what_goes_on_is_said_of_the_run_as_it_is(client: Client) -> None:
    run = ready_run()
    claimed(run)
    assert "Worker here/1 finishes this step, act" in asked(client, run, "pause").happens[0]
    assert "Worker here/1 is at this step now" in asked(client, run, "cancel").happens[1]
    parent = driven(batch, does="css")
    assert asked(client, parent, "cancel").happens[1].startswith("2 unfinished runs")
    assert "each is paused on its own page" in asked(client, parent, "pause").stays[1]


# --- twice, and two people --------------------------------------------------------------------


@pytest.mark.parametrize("control", ["cancel", "pause"])
def test_twice_is_harmless(client: Client, control: str) -> None:
    run = started_run()
    for _ in range(2):
        assert post(client, run, control).status_code == HTTPStatus.SEE_OTHER
    assert AuditEntry.objects.filter(object=f"run:{run.pk}").count() == 1


def test_asking_twice_for_an_end_that_takes_time_is_harmless(
    client: Client, destination: RunningDestination
) -> None:
    ready_provider("desk", destination.url)
    run = held_operation(destination).run
    for _ in range(2):
        assert post(client, run, "cancel").status_code == HTTPStatus.SEE_OTHER
    assert AuditEntry.objects.filter(verb="run cancelled").count() == 1


def test_the_second_to_pause_is_told_who_was_first(client: Client) -> None:
    run = started_run()
    pause_run(run.pk, by="user:3 ada", reason="Mine.")
    answer = post(client, run, "pause")
    assert answer.status_code == HTTPStatus.CONFLICT
    assert answer.context["page"].overtaken.startswith("ada paused it first, at ")
    text = answer.content.decode()
    assert "Nothing was changed" in text
    assert url_of(run) in text
    run.refresh_from_db()
    assert run.paused_by == "user:3 ada"


def test_the_second_to_cancel_is_told_who_was_first(
    client: Client, destination: RunningDestination
) -> None:
    ready_provider("desk", destination.url)
    run = held_operation(destination).run
    cancel_run(run.pk, by="user:3 ada")
    answer = post(client, run, "cancel", htmx=True)
    assert answer.status_code == HTTPStatus.CONFLICT
    assert answer.context["page"].overtaken.startswith("ada asked for its end first, at ")
    assert "<html" not in answer.content.decode()


def test_the_second_to_resume_is_told_that_it_is_done(client: Client) -> None:
    run = started_run()
    answer = post(client, run, "resume")
    assert answer.status_code == HTTPStatus.CONFLICT
    assert "not paused, or not any more" in answer.context["page"].overtaken


def test_who_resumes_from_an_old_form_does_not_end_a_pause_that_somebody_began_since(
    client: Client,
) -> None:
    run = started_run()
    pause_run(run.pk, by="user:3 ada")
    old = {"reason": WHY, "paused_at": asked(client, run, "resume").paused_at}
    resume_run(run.pk, by="user:3 ada")
    pause_run(run.pk, by="user:4 grace", reason="The provider pays twice.")
    answer = client.post(url_of(run, "resume"), old)
    assert answer.status_code == HTTPStatus.CONFLICT
    assert "grace paused it anew" in answer.content.decode()
    assert wishes(run) == (False, True)
    now = {"reason": WHY, "paused_at": asked(client, run, "resume").paused_at}
    assert client.post(url_of(run, "resume"), now).status_code == HTTPStatus.SEE_OTHER
    assert wishes(run) == (False, False)


@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_a_run_that_has_ended_meanwhile_is_said_to_be(
    client: Client, control: str, state: str
) -> None:
    (run,) = many_runs(1, state)
    assert page_at(client, run).controls == ()
    answer = post(client, run, control)
    assert answer.status_code == HTTPStatus.CONFLICT
    assert answer.context["page"].overtaken == f"It is {state} already. Nothing was changed."
