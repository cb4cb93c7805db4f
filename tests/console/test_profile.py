"""A person's own preferences: time zone, shortcuts, live updates."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from django.test import Client

from reconciliation.models import Hold, Profile, Provider
from tests.console.posting import HTMX
from tests.factories import many_held, many_runs, person, ready_provider
from workflows.models import Run

pytestmark = pytest.mark.django_db

PROFILE, LIVE = "/profile/", "/profile/live/"


@pytest.fixture
def reads(client: Client) -> Client:
    ready_provider("payments")
    client.force_login(person())
    return client


def test_times_are_shown_in_the_chosen_zone_and_always_with_it(reads: Client) -> None:
    (run,) = many_runs(1)
    Run.objects.filter(pk=run.pk).update(created_at="2026-03-10T03:12:40Z")
    assert "10 Mar 2026, 03:12:40 UTC" in reads.get("/runs/").content.decode()
    answer = reads.post(PROFILE, {"time_zone": "Europe/Berlin", "letters": "on"}, follow=True)
    assert "Saved." in answer.content.decode()
    text = reads.get("/runs/").content.decode()
    assert "10 Mar 2026, 04:12:40 CET" in text
    assert 'datetime="2026-03-10T03:12:40.000Z"' in text
    assert 'data-zone="Europe/Berlin"' in text
    # The time axis of the run is labelled in it too.
    page = reads.get(f"/runs/{run.pk}/")
    assert "all times CET" in page.content.decode()
    assert page.context["page"].timeline.start.hour == 4


def test_times_in_sentences_are_in_the_chosen_zone_too(reads: Client) -> None:
    provider = Provider.objects.get()
    Provider.objects.update(contradicted_at="2026-03-10T03:12:40Z", contradiction="It paid twice.")
    (hold,) = many_held(1, provider)
    Hold.objects.filter(pk=hold.pk).update(due_at="2026-03-10T16:30:00Z")
    reads.post(PROFILE, {"time_zone": "Asia/Tokyo"})
    causes = reads.get(f"/runs/{hold.run_id}/").context["page"].why.causes
    (held,) = [cause.text for cause in causes if cause.name == "Held"]
    assert held.endswith("due 11 Mar, 01:30 JST")
    contract = reads.get(f"/operations/{hold.operation_id}/").context["page"].contract
    (contradicted,) = [fact.text for fact in contract.facts if fact.term == "Contradicted"]
    assert contradicted == "10 Mar, 12:12 JST"


def test_a_zone_without_letters_is_named_by_its_offset(reads: Client) -> None:
    many_runs(1)
    reads.post(PROFILE, {"time_zone": "America/Sao_Paulo"})
    assert " UTC-03</span>" in reads.get("/runs/").content.decode()


@pytest.mark.parametrize("zone", ["../etc/passwd", "Factory", "localtime"])
def test_a_zone_that_is_none_is_refused_and_nothing_is_saved(reads: Client, zone: str) -> None:
    answer = reads.post(PROFILE, {"time_zone": zone})
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "Nothing was saved." in answer.content.decode()
    assert not Profile.objects.exists()


def test_single_letter_shortcuts_can_be_switched_off(reads: Client) -> None:
    assert "data-letters" not in reads.get(PROFILE).content.decode()
    reads.post(PROFILE, {"time_zone": ""})
    text = reads.get(PROFILE).content.decode()
    assert 'data-letters="off"' in text
    assert 'name="letters" checked' not in " ".join(text.split())


def test_live_updates_stay_paused_for_the_person_until_they_resume(reads: Client) -> None:
    assert "data-live=" not in reads.get("/runs/").content.decode()
    answer = reads.post(LIVE, {"live": "paused"}, headers=HTMX)
    assert answer.status_code == HTTPStatus.NO_CONTENT
    elsewhere = Client()
    elsewhere.force_login(person())
    assert 'data-live="paused"' in elsewhere.get("/runs/").content.decode()
    assert reads.post(LIVE, {"live": "on"}).status_code == HTTPStatus.SEE_OTHER
    assert "data-live=" not in elsewhere.get("/runs/").content.decode()
    # Saving the one leaves the other as it is.
    reads.post(LIVE, {"live": "paused"})
    reads.post(PROFILE, {"time_zone": "UTC", "letters": "on"})
    assert not Profile.objects.get().live


def test_one_person_s_choice_is_not_another_s(reads: Client) -> None:
    reads.post(PROFILE, {"time_zone": "Asia/Tokyo"})
    other = Client()
    other.force_login(person("reviewer_2"))
    assert "JST" not in other.get(PROFILE).content.decode()


def test_looking_changes_nothing(reads: Client) -> None:
    reads.get(PROFILE)
    assert reads.get(LIVE).status_code == HTTPStatus.METHOD_NOT_ALLOWED
    assert not Profile.objects.exists()


def test_without_a_session_it_leads_to_the_login_page(client: Client) -> None:
    assert client.get(PROFILE).status_code == HTTPStatus.FOUND
    assert client.post(LIVE).status_code == HTTPStatus.FOUND
