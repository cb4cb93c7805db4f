"""Who may see and do what: whatever the address, and what an owner is given."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from reconciliation.models import AuditEntry, Hold, ReviewQueue
from reconciliation.services.setup import make_owner, set_owners
from tests.console.posting import filled, form_at, post, url_of
from tests.factories import administrator, many_held, person, ready_provider, stranger, tenant
from workflows.models import Tenant

pytestmark = pytest.mark.django_db


def fresh(user: Any) -> Any:
    """The account as its next request finds it: rights are remembered on the object."""
    return get_user_model().objects.get(pk=user.pk)


def signed_in(user: Any) -> Client:
    client = Client()
    client.force_login(fresh(user))
    return client


@pytest.fixture
def hold() -> Hold:
    return many_held(1, ready_provider("payments"))[0]


@pytest.fixture
def queue(hold: Hold) -> ReviewQueue:
    assert hold.queue is not None
    ReviewQueue.objects.filter(pk=hold.queue.pk).update(tenant=tenant())
    return ReviewQueue.objects.get(pk=hold.queue.pk)


def test_an_owner_may_do_what_they_own(hold: Hold, queue: ReviewQueue) -> None:
    owner = person("owner_1")
    assert signed_in(owner).get(url_of(hold.operation)).status_code == HTTPStatus.NOT_FOUND
    make_owner(owner, queue)
    make_owner(owner, queue)  # again changes nothing
    client = signed_in(owner)
    assert client.get("/review/").context["page"].total == 1
    page = client.get(url_of(hold.operation)).context["page"]
    assert page.decide is not None
    assert page.request
    assert post(client, page.decide, "abandon").status_code == HTTPStatus.SEE_OTHER
    assert fresh(owner).has_perm("reconciliation.assign", queue)


def test_owning_a_queue_without_a_tenant_shows_no_tenant(hold: Hold) -> None:
    owner = person("owner_1")
    queue = ReviewQueue.objects.create(slug="all", name="All")
    make_owner(owner, queue)
    assert queue.owners.filter(pk=owner.pk).exists()
    assert signed_in(owner).get("/review/").context["page"].total == 0
    assert not any(
        fresh(owner).has_perm("workflows.view_tenant", each) for each in Tenant.objects.all()
    )


def test_an_owner_no_more_may_not_decide_any_more(hold: Hold, queue: ReviewQueue) -> None:
    leaves, stays = person("owner_1"), person("owner_2")
    set_owners(queue, [leaves, stays], by=administrator())
    form = form_at(signed_in(leaves), url_of(hold.operation))
    set_owners(queue, [stays], by=administrator())
    client = signed_in(leaves)
    assert client.get("/review/").context["page"].total == 0
    assert post(client, form, "abandon").status_code == HTTPStatus.FORBIDDEN
    entry = AuditEntry.objects.filter(verb="set owners").latest("seq")
    assert (entry.detail["added"], entry.detail["removed"]) == ([], ["owner_1"])


def test_an_account_that_is_closed_decides_nothing(hold: Hold, queue: ReviewQueue) -> None:
    owner = person("owner_1")
    make_owner(owner, queue)
    client = signed_in(owner)
    form = form_at(client, url_of(hold.operation))
    get_user_model().objects.filter(pk=owner.pk).update(is_active=False)
    assert client.post(form.url, filled(form, "abandon")).status_code == HTTPStatus.FOUND
    assert Hold.objects.get(pk=hold.pk).state == "open"


def test_a_hold_that_no_queue_takes_is_an_administrators_to_decide(hold: Hold) -> None:
    Hold.objects.filter(pk=hold.pk).update(queue=None)
    reads = signed_in(person())
    page = reads.get(url_of(hold.operation)).context["page"]
    assert page.decide is None
    assert "an administrator must set one up" in page.not_yours
    client = signed_in(administrator())
    form = form_at(client, url_of(hold.operation))
    assert post(reads, form, "abandon").status_code == HTTPStatus.FORBIDDEN
    assert post(client, form, "abandon").status_code == HTTPStatus.SEE_OTHER


def test_nothing_tells_what_may_not_be_seen_from_what_is_not_there(hold: Hold) -> None:
    client = signed_in(stranger())
    names = {
        "operation": hold.operation_id,
        "operation_decide": hold.operation_id,
        "operation_ask": hold.operation_id,
        "run": hold.run_id,
        "held_run": hold.run_id,
        "held_run_decide": hold.run_id,
    }
    for name, subject in names.items():
        real = reverse(name, args=[subject])
        made_up = reverse(name, args=["00000000-0000-7000-8000-000000000000"])
        ask = client.post if name.endswith(("decide", "ask")) else client.get
        there, nowhere = ask(real), ask(made_up)
        assert there.status_code == nowhere.status_code == HTTPStatus.NOT_FOUND, name
        assert same(there) == same(nowhere), name


def same(answer: Any) -> str:
    """The page without what differs each time: its clock and tokens."""
    text: str = answer.content.decode()
    differs = ("data-now", "data-clock", "csrf", "since=")
    lines = [line for line in text.splitlines() if not any(each in line for each in differs)]
    return "\n".join(lines)
