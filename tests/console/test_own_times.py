"""Times that people type, by the clocks of the zone that they have chosen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.urls import reverse
from guardian.shortcuts import assign_perm

from reconciliation.models import BulkAction, DispatchStop, Hold, Profile, Provider, Reminder
from tests.console.posting import filled, form_at, post, url_of
from tests.factories import administrator, held_step_run, many_held, person, ready_provider
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db

KATHMANDU, BERLIN = "Asia/Kathmandu", "Europe/Berlin"


@pytest.fixture
def provider() -> Provider:
    return ready_provider("payments")


@pytest.fixture
def hold(provider: Provider) -> Hold:
    return many_held(1, provider)[0]


@pytest.fixture
def owner(client: Client, provider: Provider) -> Client:
    """Signed in as `reviewer_1`, whose clocks are 5 h 45 min ahead the whole year."""
    assign_perm("reconciliation.assign", person(), provider.default_queue)
    client.force_login(person())
    lives_in(KATHMANDU)
    return client


def lives_in(zone: str) -> None:
    Profile.objects.update_or_create(user=person(), defaults={"time_zone": zone})


def in_days(days: int) -> tuple[datetime, str]:
    """A moment, and how clocks in Kathmandu show it, as a browser posts it."""
    at = (database_now() + timedelta(days=days)).replace(second=0, microsecond=0)
    return at, f"{at.astimezone(ZoneInfo(KATHMANDU)):%Y-%m-%dT%H:%M}"


def text_of(answer: Any) -> str:
    text: str = answer.content.decode()
    return text


def errors_of(answer: Any) -> dict[str, str]:
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    errors: dict[str, str] = answer.context["page"].errors
    return errors


# --- a snooze, a reminder ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["review_snooze", "review_remind"])
def test_a_time_is_read_by_the_clocks_that_the_field_names(
    owner: Client, hold: Hold, name: str
) -> None:
    url = reverse(name, args=[hold.pk])
    asked = text_of(owner.get(url))
    assert "Date and time (Asia/Kathmandu, now UTC+05:45)" in asked
    assert "Tomorrow, 08:00 (Asia/Kathmandu, now UTC+05:45)" in asked
    assert 'name="zone" value="Asia/Kathmandu"' in asked
    at, typed = in_days(3)
    given = {"within": "at", "until": typed, "zone": KATHMANDU}
    assert owner.post(url, given).status_code == HTTPStatus.SEE_OTHER
    assert came_of(hold, name) == at


def came_of(hold: Hold, name: str) -> datetime | None:
    if name == "review_remind":
        return Reminder.objects.get(hold=hold).at
    return Hold.objects.get(pk=hold.pk).snoozed_until


def test_tomorrow_begins_by_ones_own_clocks(owner: Client, hold: Hold) -> None:
    url = reverse("review_snooze", args=[hold.pk])
    before = database_now()
    owner.post(url, {"within": "tomorrow", "zone": KATHMANDU})
    until = Hold.objects.get(pk=hold.pk).snoozed_until
    assert until is not None
    own = until.astimezone(ZoneInfo(KATHMANDU))
    days = {
        now.astimezone(ZoneInfo(KATHMANDU)).date() + timedelta(days=1)
        for now in (before, database_now())
    }
    assert f"{own:%H:%M}" == "08:00"
    assert own.date() in days


def test_who_has_chosen_no_zone_types_utc(owner: Client, hold: Hold) -> None:
    Profile.objects.all().delete()
    url = reverse("review_snooze", args=[hold.pk])
    assert "Date and time (UTC)" in text_of(owner.get(url))
    at, _ = in_days(3)
    owner.post(url, {"within": "at", "until": f"{at:%Y-%m-%dT%H:%M}", "zone": "UTC"})
    assert Hold.objects.get(pk=hold.pk).snoozed_until == at


def changes_of_berlin() -> tuple[str, str]:
    """A time that the clocks of Berlin never show, and one that they show twice; both to come."""
    years = range(database_now().year, database_now().year + 2)
    coming = [day for year in years for day in (change(year, 3), change(year, 10)) if day]
    spring = next(day for day in coming if day.month == 3)
    autumn = next(day for day in coming if day.month == 10)
    return f"{spring:%Y-%m-%d}T02:30", f"{autumn:%Y-%m-%d}T02:30"


def change(year: int, month: int) -> datetime | None:
    """The last Sunday of the month, where it is to come."""
    last = datetime(year, month, 31, tzinfo=UTC)
    sunday = last - timedelta(days=(last.weekday() + 1) % 7)
    return sunday if sunday > database_now() else None


def test_a_time_that_never_comes_or_twice_is_refused_and_stays_typed(
    owner: Client, hold: Hold
) -> None:
    lives_in(BERLIN)
    url = reverse("review_snooze", args=[hold.pk])
    for typed, says in zip(changes_of_berlin(), ("put forward", "put back"), strict=True):
        given = {"within": "at", "until": typed, "zone": BERLIN}
        answer = owner.post(url, given)
        (said,) = errors_of(answer).values()
        assert f"The clocks of Europe/Berlin are {says} then" in said
        assert f'value="{typed}"' in text_of(answer)
        # Of another choice it is not read at all.
        assert owner.post(url, given | {"within": "1h"}).status_code == HTTPStatus.SEE_OTHER
    assert owner.post(url, {"within": "at", "until": "0001-01-01T00:00", "zone": BERLIN}).context


@pytest.mark.parametrize(("within", "field"), [("at", "id_until"), ("tomorrow", "id_within")])
def test_what_was_typed_by_other_clocks_is_not_read_by_these(
    owner: Client, hold: Hold, within: str, field: str
) -> None:
    url = reverse("review_snooze", args=[hold.pk])
    _, typed = in_days(3)
    answer = owner.post(url, {"within": within, "until": typed, "zone": BERLIN})
    said = errors_of(answer)[field]
    assert "was Europe/Berlin when this form was shown, and is Asia/Kathmandu now" in said
    # Sent again it is read as it is shown now.
    assert 'name="zone" value="Asia/Kathmandu"' in text_of(answer)
    assert Hold.objects.get(pk=hold.pk).snoozed_until is None
    assert errors_of(owner.post(url, {"within": within, "until": typed}))  # of an older page
    assert owner.post(url, {"within": "1h", "zone": BERLIN}).status_code == HTTPStatus.SEE_OTHER


@pytest.mark.parametrize("do", ["snooze", "remind"])
def test_a_plan_for_many_reads_and_says_the_moment_by_ones_own_clocks(
    owner: Client, hold: Hold, do: str
) -> None:
    at, typed = in_days(3)
    url = reverse("review_bulk")
    form = text_of(owner.get(url, {"do": do, "hold": hold.pk}))
    assert 'name="zone" value="Asia/Kathmandu"' in form
    assert "(Asia/Kathmandu, now UTC+05:45)" in form
    query = {"do": do, "hold": hold.pk, "within": "at", "until": typed, "zone": KATHMANDU}
    plan = owner.get(url, query)
    own = at.astimezone(ZoneInfo(KATHMANDU))
    assert f"{own.day} {own:%b %Y, %H:%M:%S} UTC+0545" in text_of(plan)
    page = plan.context["page"]
    given = {
        "do": do,
        "holds": page.holds,
        "token": page.token,
        "until": f"{at:%Y-%m-%dT%H:%M:%S%z}",
    }
    assert f'value="{given["until"]}"' in text_of(plan)
    owner.post(url, given)
    assert BulkAction.objects.get().until == at
    moved = owner.get(url, query | {"zone": BERLIN})
    assert not moved.context["page"].ready
    assert "Your time zone was Europe/Berlin" in text_of(moved)


# --- keeping on hold --------------------------------------------------------------------------


def test_a_case_is_kept_on_hold_until_a_time_by_ones_own_clocks(owner: Client, hold: Hold) -> None:
    url = url_of(hold.operation)  # type: ignore[arg-type]
    form = form_at(owner, url)
    assert (form.zone, form.zone_said) == (KATHMANDU, "Asia/Kathmandu, now UTC+05:45")
    shown = text_of(owner.get(url))
    assert "Until when? (Asia/Kathmandu, now UTC+05:45)" in shown
    assert '<input type="hidden" name="zone" value="Asia/Kathmandu">' in shown
    at, typed = in_days(3)
    assert (
        post(owner, form, "keep_holding", until=typed, zone=KATHMANDU).status_code
        == HTTPStatus.SEE_OTHER
    )
    assert Hold.objects.get(pk=hold.pk).due_at == at


def test_a_held_step_is_kept_on_hold_by_ones_own_clocks_too(owner: Client) -> None:
    Provider.objects.all().delete()
    url = reverse("held_run", args=[held_step_run().pk])
    form = form_at(owner, url)
    assert form.zone == KATHMANDU
    at, typed = in_days(3)
    post(owner, form, "keep_holding", until=typed, zone=KATHMANDU)
    assert Hold.objects.get().due_at == at


def test_a_decision_form_that_named_other_clocks_is_refused(owner: Client, hold: Hold) -> None:
    url = url_of(hold.operation)  # type: ignore[arg-type]
    _, typed = in_days(3)
    form = form_at(owner, url)
    for zone in ({"zone": BERLIN}, {}):
        answer = post(owner, form, "keep_holding", until=typed, **zone)
        assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
        shown = answer.context["page"].decide
        assert "is Asia/Kathmandu now" in shown.errors["until"]
        assert (shown.draft.until, shown.zone) == (typed, KATHMANDU)
    assert Hold.objects.get(pk=hold.pk).due_at == hold.due_at
    # What else was decided needs no time.
    assert (
        post(owner, form, "abandon", until="nonsense", zone=BERLIN).status_code
        == HTTPStatus.SEE_OTHER
    )


def test_a_draft_keeps_a_time_with_its_zone(owner: Client, hold: Hold) -> None:
    url = url_of(hold.operation)  # type: ignore[arg-type]
    _, typed = in_days(3)
    form = form_at(owner, url)
    owner.post(form.draft_url, filled(form, "keep_holding", until=typed, zone=KATHMANDU))
    assert form_at(owner, url).draft.until == typed
    lives_in(BERLIN)
    again = form_at(owner, url).draft
    assert (again.until, again.kind) == ("", "keep_holding")
    # A zone alone is nothing that somebody has typed.
    owner.post(form.draft_url, {"zone": KATHMANDU})
    assert form_at(owner, url).draft_saved_at is None


# --- dispatch ---------------------------------------------------------------------------------


def test_a_stop_ends_at_a_time_by_ones_own_clocks(client: Client) -> None:
    root = administrator()
    client.force_login(root)
    Profile.objects.create(user=root, time_zone=KATHMANDU)
    url = reverse("dispatch_change")
    assert "Until (Asia/Kathmandu, now UTC+05:45)" in text_of(client.get(url))
    at, typed = in_days(1)
    given = {"state": "paused", "reason": "They asked us to wait.", "until": typed}
    refused = client.post(url, given | {"zone": BERLIN, "token": uuid4()})
    assert "is Asia/Kathmandu now" in refused.context["errors"]["until"]
    assert 'name="zone" value="Asia/Kathmandu"' in text_of(refused)
    client.post(url, given | {"zone": KATHMANDU})
    assert DispatchStop.objects.get().until == at
