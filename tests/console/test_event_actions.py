"""Acting on an event in the console: who may, what twice does, and who was first."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse
from guardian.shortcuts import assign_perm

from reconciliation.models import AuditEntry, Hold, ReviewQueue
from tests.console.posting import HTMX
from tests.events import TYPE, delivered, driven, source, wait_of, waiting
from tests.factories import owner_of, person, stranger, tenant
from workflows.models import Event, Match, Tenant
from workflows.services.event_items import attach, dismiss

pytestmark = pytest.mark.django_db

ACTIONS = ("attach", "dismiss", "restore", "replay")
WHY = "Seen in the provider's console."


def operator(name: str = "operator_1", *rights: str) -> Any:
    user = person(name)
    for right in ("view_tenant", "control_runs", *rights):
        assign_perm(f"workflows.{right}", user, tenant())
    return get_user_model().objects.get(pk=user.pk)


@pytest.fixture(autouse=True)
def operating(client: Client) -> None:
    client.force_login(operator())


def post(client: Client, event: object, action: str, *, htmx: bool = False, **typed: str) -> Any:
    url = reverse(f"event_{action}", args=[event])
    return client.post(url, {"reason": WHY} | typed, headers=HTMX if htmx else {})


def verbs(event: object) -> list[str]:
    entries = AuditEntry.objects.filter(object=f"event:{event}").order_by("seq")
    return list(entries.values_list("verb", flat=True))


# --- who may ----------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ACTIONS)
def test_without_the_right_there_is_nothing_there(action: str) -> None:
    event = delivered().event
    looks = person("viewer_1")
    assign_perm("workflows.view_tenant", looks, tenant())
    for user in (looks, stranger()):
        client = Client()
        client.force_login(user)
        url = reverse(f"event_{action}", args=[event])
        for answer in (client.get(url), post(client, event, action)):
            assert answer.status_code == HTTPStatus.NOT_FOUND
    assert verbs(event) == []


def test_a_form_without_its_token_is_refused() -> None:
    event = delivered().event
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator())
    assert post(client, event, "dismiss").status_code == HTTPStatus.FORBIDDEN


@pytest.mark.parametrize("action", ACTIONS)
def test_asking_changes_nothing(client: Client, action: str) -> None:
    event = delivered().event
    url = reverse(f"event_{action}", args=[event])
    assert "<html" in client.get(url).content.decode()
    assert "<html" not in client.get(url, headers=HTMX).content.decode()
    assert verbs(event) == []


# --- attaching --------------------------------------------------------------------------------


def test_an_event_is_attached_and_its_run_goes_on(client: Client) -> None:
    run = waiting(correlation="PO-10077")
    event = delivered("PO10077").event
    wait = wait_of(run)
    question = client.get(f"{reverse('event_attach', args=[event])}?wait={wait.pk}").context["page"]
    assert [(each.id, each.chosen) for each in question.waits] == [(wait.pk, True)]
    answer = post(client, event, "attach", wait=str(wait.pk))
    assert (answer.status_code, answer["Location"]) == (
        HTTPStatus.SEE_OTHER,
        reverse("event", args=[event]),
    )
    match = Match.objects.get()
    assert (match.by, match.reason) == (f"user:{person('operator_1').pk} operator_1", WHY)
    (entry,) = AuditEntry.objects.filter(verb="event attached")
    assert entry.detail == {
        "wait": str(wait.pk),
        "run": str(run.pk),
        "evidence": "operator",
        "reason": WHY,
    }
    page = client.get(reverse("event", args=[event])).context["page"]
    assert (page.state, page.given[0].by, page.actions) == ("matched", "operator_1", ())
    assert driven(run).state == "completed"


def test_it_is_attached_to_a_run_that_is_named(client: Client) -> None:
    run = waiting(correlation="another")
    event = delivered().event
    assert post(client, event, "attach", run=str(run.pk)).status_code == HTTPStatus.SEE_OTHER
    assert Match.objects.get().wait == wait_of(run)


@pytest.mark.parametrize("htmx", [False, True])
def test_without_wait_or_reason_nothing_is_done(client: Client, htmx: bool) -> None:
    event = delivered().event
    answer = post(client, event, "attach", htmx=htmx, reason="", run="nonsense")
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    page = answer.context["page"]
    assert set(page.errors) == {"wait", "reason"}
    assert page.typed["run"] == "nonsense"
    assert ("<html" in answer.content.decode()) == (not htmx)
    assert verbs(event) == []


def test_a_wait_of_another_tenant_does_not_exist(client: Client) -> None:
    other = Tenant.objects.create(slug="southbay", name="Southbay")
    run = waiting(correlation="a")
    event = delivered("b", of=source("bay", other)).event
    assign_perm("workflows.view_tenant", person("operator_1"), other)
    assign_perm("workflows.control_runs", person("operator_1"), other)
    for typed in ({"wait": str(wait_of(run).pk)}, {"run": str(run.pk)}):
        answer = post(client, event, "attach", **typed)
        assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
        assert set(answer.context["page"].errors) == {"wait"}
    assert not Match.objects.exists()


def test_a_wait_that_is_over_takes_nothing(client: Client) -> None:
    run = waiting()
    late = delivered("other").event
    delivered()
    answer = post(client, late, "attach", wait=str(wait_of(run).pk))
    assert answer.status_code == HTTPStatus.CONFLICT
    assert answer.context["page"].overtaken.startswith("The wait had what it needed at ")


def test_attaching_twice_attaches_once(client: Client) -> None:
    run = waiting(correlation="a")
    event = delivered("b").event
    for _ in range(2):
        answer = post(client, event, "attach", wait=str(wait_of(run).pk))
        assert answer.status_code == HTTPStatus.SEE_OTHER
    assert Match.objects.count() == 1
    assert verbs(event) == ["event attached"]


def test_the_second_to_attach_is_told_what_the_first_did(client: Client) -> None:
    first, second = waiting(correlation="a"), waiting(correlation="b")
    event = delivered("c").event
    attach(event, wait_of(first).pk, by="user:3 ada", reason="Mine.")
    answer = post(client, event, "attach", wait=str(wait_of(second).pk), htmx=True)
    assert answer.status_code == HTTPStatus.CONFLICT
    assert answer.context["page"].overtaken.startswith(
        "ada attached it to tests.failing_at_deadline refund"
    )
    assert "Nothing was changed" in answer.content.decode()
    assert wait_of(second).state == "waiting"


# --- dismissing -------------------------------------------------------------------------------


def test_a_dismissed_event_is_taken_by_no_wait_until_that_is_taken_back(client: Client) -> None:
    event = delivered().event
    assert post(client, event, "dismiss").status_code == HTTPStatus.SEE_OTHER
    run = waiting()
    assert run.state == "waiting"
    page = client.get(reverse("event", args=[event])).context["page"]
    assert page.state == "dismissed"
    assert page.lead.startswith("operator_1 dismissed it: Seen in the provider's console.")
    assert [action.name for action in page.actions] == ["restore"]
    assert client.get("/events/").context["page"].rows == ()
    answer = post(client, event, "restore", htmx=True)
    assert (answer.status_code, answer["HX-Redirect"]) == (
        HTTPStatus.NO_CONTENT,
        reverse("event", args=[event]),
    )
    assert wait_of(run).state == "resolved"
    assert verbs(event) == ["event dismissed", "event restored"]


def test_the_audit_record_tells_of_it_to_who_may_see_the_event(client: Client) -> None:
    event = delivered().event
    post(client, event, "dismiss")
    (row,) = client.get("/audit/").context["page"].rows
    assert (row.verb, row.object, row.object_url, row.reason) == (
        "event dismissed",
        f"Event {TYPE}",
        reverse("event", args=[event]),
        WHY,
    )
    nobody = Client()
    nobody.force_login(stranger())
    assert nobody.get("/audit/").context["page"].rows == ()


def test_dismissing_twice_dismisses_once_and_the_second_person_is_told(client: Client) -> None:
    event = delivered().event
    for _ in range(2):
        assert post(client, event, "dismiss").status_code == HTTPStatus.SEE_OTHER
    assert verbs(event) == ["event dismissed"]
    other = delivered().event
    dismiss(other, by="user:3 ada", reason="Mine.")
    answer = post(client, other, "dismiss")
    assert answer.status_code == HTTPStatus.CONFLICT
    assert answer.context["page"].overtaken.startswith("ada dismissed it first, at ")


def test_an_event_that_a_wait_has_cannot_be_dismissed(client: Client) -> None:
    waiting()
    event = delivered().event
    answer = post(client, event, "dismiss")
    assert answer.status_code == HTTPStatus.CONFLICT
    assert "tests.failing_at_deadline refunded, run …" in answer.context["page"].overtaken
    assert post(client, event, "restore").status_code == HTTPStatus.CONFLICT


# --- replaying --------------------------------------------------------------------------------


def mended(**paths: str) -> None:
    shop = source()
    for name, path in paths.items():
        setattr(shop, name, path)
    shop.save()


def test_a_rejected_event_finds_its_wait_after_the_paths_were_mended(client: Client) -> None:
    run = waiting()
    body = {"event": {"id": "evt_9", "kind": TYPE, "order": 48213}}
    event = delivered("", payload=body, problem="no correlation at correlation").event
    answer = post(client, event, "replay")
    assert answer.status_code == HTTPStatus.CONFLICT
    assert answer.context["page"].overtaken.startswith("It stays rejected: ")
    mended(id_path="event.id", type_path="event.kind", correlation_path="event.order")
    assert post(client, event, "replay").status_code == HTTPStatus.SEE_OTHER
    found = Event.objects.get(pk=event)
    assert (found.state, found.event_id, found.correlation, found.problem) == (
        "matched",
        "evt_9",
        "48213",
        "",
    )
    assert wait_of(run).state == "resolved"
    assert verbs(event) == ["event replayed"]


def test_what_was_delivered_again_meanwhile_is_not_taken_twice(client: Client) -> None:
    body = {"id": "evt_9", "type": TYPE, "correlation": "48213"}
    event = delivered("", payload=body, problem="no correlation", event_id="evt_x").event
    delivered(event_id="evt_9", payload=body)
    answer = post(client, event, "replay")
    assert answer.status_code == HTTPStatus.CONFLICT
    assert "has delivered the same ID again" in answer.context["page"].overtaken
    assert Event.objects.get(pk=event).state == "rejected"


# --- ambiguous events and their hold ----------------------------------------------------------


@pytest.fixture
def queue() -> ReviewQueue:
    tenant()
    made = ReviewQueue.objects.create(slug="care", name="Care", tenant=tenant())
    owner_of(made)
    return made


def ambiguous() -> tuple[Any, list[Any]]:
    runs = [waiting(), waiting()]
    return delivered().event, runs


def owners_queue() -> Any:
    client = Client()
    client.force_login(person("reviewer_1"))
    return client.get("/review/").context["page"]


def test_an_ambiguous_event_opens_a_hold_that_leads_to_it(queue: ReviewQueue) -> None:
    event, _ = ambiguous()
    (row,) = owners_queue().rows
    assert (row.url, row.id, row.title, row.target) == (
        reverse("event", args=[event]),
        event,
        f"Event {TYPE}",
        "“48213” from payments",
    )
    assert row.reason.startswith("2 open waits could take this event")
    assert (Hold.objects.get().queue, Hold.objects.get().run) == (queue, None)


def test_attaching_ends_the_hold(client: Client, queue: ReviewQueue) -> None:
    event, runs = ambiguous()
    chosen = wait_of(runs[1])
    assert post(client, event, "attach", wait=str(chosen.pk)).status_code == HTTPStatus.SEE_OTHER
    assert owners_queue().rows == ()
    assert Hold.objects.get().state == "closed"
    assert (wait_of(runs[0]).state, wait_of(runs[1]).state) == ("waiting", "resolved")


def test_dismissing_ends_the_hold_and_taking_that_back_opens_one(
    client: Client, queue: ReviewQueue
) -> None:
    event, _ = ambiguous()
    post(client, event, "dismiss")
    assert owners_queue().rows == ()
    post(client, event, "restore")
    assert len(owners_queue().rows) == 1
    assert Hold.objects.count() == 2


def test_a_reader_of_another_tenant_sees_no_hold(queue: ReviewQueue) -> None:
    ambiguous()
    user = person("reader_1")
    assign_perm("reconciliation.view_reviewqueue", user, queue)
    client = Client()
    client.force_login(user)
    assert client.get("/review/").context["page"].rows == ()


# --- sending ----------------------------------------------------------------------------------


def sender() -> Client:
    user = operator("sender_1")
    assign_perm("workflows.send_event", user, source())
    client = Client()
    client.force_login(get_user_model().objects.get(pk=user.pk))
    return client


def test_only_who_may_send_events_of_a_source_is_offered_to(client: Client) -> None:
    source()
    assert not client.get("/events/").context["page"].may_send
    assert client.get("/events/send/").status_code == HTTPStatus.NOT_FOUND
    assert sender().get("/events/").context["page"].may_send


def test_an_event_sent_by_hand_is_taken_by_its_wait_and_sent_once() -> None:
    run = waiting()
    client = sender()
    token = client.get("/events/send/").context["page"].token
    typed = {
        "source": "payments",
        "type": TYPE,
        "correlation": "48213",
        "data": '{"amount": 1.10}',
        "token": token,
    }
    for _ in range(2):
        answer = client.post("/events/send/", typed)
        event = Event.objects.get()
        assert (answer.status_code, answer["Location"]) == (
            HTTPStatus.SEE_OTHER,
            reverse("event", args=[event.pk]),
        )
    assert (event.state, event.event_id, event.duplicates) == ("matched", token, 1)
    assert bytes(event.body or b"").endswith(b'"data": {"amount": 1.10}}')
    assert driven(run).state == "completed"


def test_what_cannot_be_sent_is_said_beside_its_field() -> None:
    client = sender()
    typed = {"source": "payments", "type": TYPE, "correlation": "", "data": "{", "token": "t"}
    answer = client.post("/events/send/", typed)
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert set(answer.context["page"].errors) == {"correlation"}
    answer = client.post("/events/send/", typed | {"correlation": "a"})
    assert set(answer.context["page"].errors) == {"data"}
    assert answer.context["page"].typed["data"] == "{"
    assert not Event.objects.exists()
