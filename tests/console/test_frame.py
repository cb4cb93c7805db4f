"""What stands around every page: views of the queue, who is on call, one banner at a time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from guardian.shortcuts import remove_perm

from reconciliation.core.channels import ChannelKind
from reconciliation.models import Channel, Hold, Provider, SavedView, Shift
from tests.factories import many_held, person, ready_provider, stranger, switched
from tests.telling import always_on_call, channel
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db

PAGE = "/runs/"


@pytest.fixture
def provider() -> Provider:
    return ready_provider("payments")


@pytest.fixture
def owner(client: Client, provider: Provider) -> Client:
    client.force_login(person())
    return client


def shell_at(client: Client) -> Any:
    return client.get(PAGE).context["shell"]


def views_at(client: Client) -> dict[str, str]:
    return {view.text: view.count for view in shell_at(client).views}


# --- views ------------------------------------------------------------------------------------


def test_the_side_bar_counts_what_is_mine_and_what_closes(
    owner: Client, provider: Provider
) -> None:
    assert views_at(owner) == {"Mine": "0", "Window closing": "0"}
    mine, closing, _ = many_held(3, provider)
    Hold.objects.filter(pk=mine.pk).update(assignee=person())
    soon = database_now() + timedelta(minutes=10)
    Hold.objects.filter(pk=closing.pk).update(window_ends_at=soon)
    assert views_at(owner) == {"Mine": "1", "Window closing": "1"}
    other = Client()
    other.force_login(stranger())
    assert views_at(other) == {"Mine": "0", "Window closing": "0"}


def test_views_that_a_person_keeps_stand_there_too_and_lead_to_the_queue(
    owner: Client,
) -> None:
    SavedView.objects.create(person=person(), name="Large ones", query="amount=1000", made_by="x")
    SavedView.objects.create(
        person=person("reviewer_2"), name="Not mine", query="amount=1", made_by="x"
    )
    last = shell_at(owner).views[-1]
    assert (last.text, last.url) == ("Large ones", "/review/?amount=1000")
    assert "Not mine" not in owner.get(PAGE).content.decode()


# --- on call ----------------------------------------------------------------------------------


def test_it_says_who_is_on_call_for_the_reader_s_queues(owner: Client, provider: Provider) -> None:
    assert shell_at(owner).on_call == []
    always_on_call(provider.default_queue, "night_1")
    (duty,) = shell_at(owner).on_call
    assert (duty.queue, duty.people) == (str(provider.default_queue), "night_1")
    assert "On call now" in owner.get(PAGE).content.decode()
    other = Client()
    other.force_login(stranger())
    assert shell_at(other).on_call == []


def test_who_is_on_call_without_the_right_to_decide_is_named_as_that(
    owner: Client, provider: Provider
) -> None:
    night = always_on_call(provider.default_queue, "night_1")
    always_on_call(provider.default_queue, "night_2")
    (duty,) = shell_at(owner).on_call
    assert (duty.people, duty.powerless) == ("night_1 and night_2", "")
    assert "may not decide" not in owner.get(PAGE).content.decode()
    remove_perm("reconciliation.decide", night, provider.default_queue)
    assert shell_at(owner).on_call[0].powerless == "night_1"
    assert "night_1 may not decide there" in owner.get(PAGE).content.decode()


def test_where_nobody_is_on_call_it_says_so_and_until_when(
    owner: Client, provider: Provider
) -> None:
    now = database_now()
    Shift.objects.create(
        queue=provider.default_queue,
        person=person(),
        starts_at=now + timedelta(hours=1),
        ends_at=now + timedelta(hours=9),
    )
    Shift.objects.create(
        queue=provider.default_queue,
        person=person(),
        weekdays=str((now.weekday() + 3) % 7),
        starts="08:00",
        ends="09:00",
        zone="UTC",
    )
    (duty,) = shell_at(owner).on_call
    assert (duty.people, duty.today) == ("", True)
    assert duty.until == now + timedelta(hours=1)
    assert "Nobody" in owner.get(PAGE).content.decode()


# --- banners ----------------------------------------------------------------------------------


def test_one_banner_at_a_time_the_most_serious_with_a_line_of_the_other(
    owner: Client, provider: Provider
) -> None:
    made = channel(provider.default_queue, ChannelKind.SLACK, "https://hooks.example.com/x")
    Channel.objects.filter(pk=made.pk).update(failing_since=database_now(), problem="HTTP 500")
    text = owner.get(PAGE).content.decode()
    assert text.count('class="stops"') == 1
    assert "is failing" in text
    switched(provider, "paused")
    text = owner.get(PAGE).content.decode()
    assert text.count('class="stops"') == 1
    assert "Dispatch of Payments is paused" in text
    assert "Nor is everybody told:" in text
    assert str(made) in text
