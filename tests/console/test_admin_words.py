"""What the admin says to whoever sets something up by hand, and what it chooses for nobody."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from django.test import Client
from django.urls import reverse
from guardian.shortcuts import remove_perm

from reconciliation.models import Channel, Delivery, Message, Notification
from tests.console.posting import url_of
from tests.console.test_admin_setup import errors, provider_fields
from tests.destination import RunningDestination
from tests.factories import (
    administrator,
    held_operation,
    open_hold_of,
    owner_of,
    person,
    reader,
    ready_provider,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(administrator())
    return client


def test_no_adapter_is_chosen_for_anybody(admin: Client) -> None:
    url = reverse("admin:reconciliation_provider_add")
    form = admin.get(url).context["adminform"].form
    assert form["adapter"].field.choices[0] == ("", "---------")
    assert not form["adapter"].value()
    assert "adapter" in errors(admin.post(url, {"name": "Acme", "slug": "acme"}))


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("not a url", "Another address is needed: an address such as https://api.example.com"),
        ("http://10.0.0.1", "Another address is needed: the address leads, or may lead, into"),
    ],
)
def test_an_address_that_cannot_be_is_refused_in_a_sentence(
    admin: Client, address: str, said: str
) -> None:
    provider = ready_provider("desk")
    url = reverse("admin:reconciliation_provider_change", args=[provider.pk])
    answer = admin.post(url, provider_fields(provider, base_url=address))
    (found,) = errors(answer)["base_url"]
    assert found.startswith(said)
    assert found.endswith(".")


def test_what_would_have_gone_is_counted_in_words(admin: Client) -> None:
    queue = ready_provider("desk").default_queue
    assert queue is not None
    channel = Channel.objects.create(kind="email", queue=queue, address="desk@example.com")
    for number in range(2):
        notification = Notification.objects.create(kind="test", cause=str(number), channel=channel)
        message = Message.objects.create(channel=channel) if not number else None
        Delivery.objects.create(notification=notification, channel=channel, message=message)
    url = reverse("admin:reconciliation_channel_delete", args=[channel.pk])
    answer = admin.get(url)
    assert answer.status_code == HTTPStatus.FORBIDDEN
    counted = {f"{each.number} {each.noun}" for each in answer.context["dependents"]}
    assert counted == {"2 deliveries", "1 message"}


def test_the_rights_of_an_owner_are_told_as_they_are_given(admin: Client) -> None:
    queue = ready_provider("desk").default_queue
    text = admin.get(reverse("rights", args=["queue", queue.pk])).content.decode()
    assert "Owners get View, Decide, Assign and Second" in text


def test_an_owner_who_may_not_decide_is_not_named_as_who_decides(
    destination: RunningDestination,
) -> None:
    ready_provider("desk", destination.url)
    held = held_operation(destination)
    queue = open_hold_of(held).queue
    assert queue is not None
    owner_of(queue, "reviewer_2")
    remove_perm("reconciliation.decide", person("reviewer_2"), queue)
    looks = Client()
    looks.force_login(reader(queue))
    said = looks.get(url_of(held)).context["page"].not_yours
    assert said.endswith("decide it: reviewer_1.")
