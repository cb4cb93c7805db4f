"""Two tabs, two accounts: nobody decides with a form that was shown to somebody else."""

from __future__ import annotations

import json
import re
from http import HTTPStatus
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from reconciliation.models import Decision, Hold
from tests.console.posting import HTMX, filled, form_at, url_of
from tests.factories import NOTE, administrator, many_held, owner_of, ready_provider

pytestmark = pytest.mark.django_db

FROM_HERE = {"Origin": "http://testserver"}


@pytest.fixture
def hold() -> Hold:
    return many_held(1, ready_provider("payments"))[0]


@pytest.fixture
def browser(hold: Hold) -> Client:
    """Checks Django's token, as the console does: signing in again makes another one."""
    assert hold.queue is not None
    for name in ("reviewer_1", "reviewer_2"):
        owner_of(hold.queue, name)
    client = Client(enforce_csrf_checks=True)
    sign_in(client, "reviewer_1")
    return client


def sign_in(client: Client, name: str) -> None:
    client.logout()
    fields = {"username": name, "password": name}
    fields |= hidden(client.get("/login/").content.decode())
    assert client.post("/login/", fields)["Location"] == "/review/"


def hidden(page: str) -> dict[str, str]:
    """What the page's first form carries unseen."""
    names = ("csrfmiddlewaretoken", "rendered_for")
    found = {name: re.search(rf'name="{name}" value="([^"]*)"', page) for name in names}
    return {name: match[1] for name, match in found.items() if match}


def typed(client: Client, hold: Hold) -> tuple[str, dict[str, Any]]:
    """The decision form as it is shown to whoever is signed in, filled in."""
    url = url_of(hold.operation)
    form = form_at(client, url)
    return form.url, filled(form, "abandon") | hidden(client.get(url).content.decode())


def test_whoever_the_form_was_shown_to_decides_with_it(browser: Client, hold: Hold) -> None:
    url, fields = typed(browser, hold)
    assert browser.post(url, fields).status_code == HTTPStatus.SEE_OTHER
    assert Decision.objects.get().by_name == "reviewer_1"


def test_another_account_does_not_and_what_was_typed_is_shown(browser: Client, hold: Hold) -> None:
    url, fields = typed(browser, hold)
    sign_in(browser, "reviewer_2")
    answer = browser.post(url, fields, headers=FROM_HERE)
    text = answer.content.decode()
    assert answer.status_code == HTTPStatus.CONFLICT
    assert "You are signed in as reviewer_2 now" in text
    assert NOTE in text
    assert fields["csrfmiddlewaretoken"] not in text
    assert not Decision.objects.exists()


def test_what_a_plan_for_many_carries_was_typed_by_nobody(browser: Client, hold: Hold) -> None:
    plan = browser.get("/review/bulk/", {"do": "look_up", "hold": str(hold.pk)})
    fields = hidden(plan.content.decode()) | {"do": "look_up", "holds": f"{hold.pk.hex}:"}
    sign_in(browser, "reviewer_2")
    answer = browser.post("/review/bulk/", fields, headers=FROM_HERE)
    assert answer.status_code == HTTPStatus.CONFLICT
    assert hold.pk.hex not in answer.content.decode()
    assert "What you had typed" not in answer.content.decode()


def test_in_a_panel_the_form_stays_and_a_sentence_says_so(browser: Client, hold: Hold) -> None:
    url, fields = typed(browser, hold)
    sign_in(browser, "reviewer_2")
    answer = browser.post(url, fields, headers=HTMX)
    assert answer.status_code == HTTPStatus.CONFLICT
    assert answer["HX-Retarget"] == "#alerts"
    assert "Nothing was recorded" in answer.content.decode()
    assert "<html" not in answer.content.decode()
    assert not Decision.objects.exists()


def test_even_where_the_token_would_still_fit(hold: Hold, browser: Client) -> None:
    """Django's token alone is no proof: it is the browser's, not the person's."""
    _, fields = typed(browser, hold)
    client = Client()  # checks no token
    client.force_login(owner_of(hold.queue, "reviewer_2"))  # type: ignore[arg-type]
    form = form_at(client, url_of(hold.operation))
    fields |= filled(form, "abandon")
    assert client.post(form.url, fields).status_code == HTTPStatus.CONFLICT
    assert not Decision.objects.exists()


def test_what_another_site_sends_is_not_shown(browser: Client, hold: Hold) -> None:
    url, fields = typed(browser, hold)
    sign_in(browser, "reviewer_2")
    text = browser.post(url, fields, headers={"Origin": "https://elsewhere.example"})
    assert NOTE not in text.content.decode()


@pytest.mark.parametrize("what", ["dialog", "poll", "form"])
def test_a_page_of_one_account_is_given_no_part_that_is_made_for_another(
    browser: Client, hold: Hold, what: str
) -> None:
    """Its frame names the first, and what is pressed in it would count for the second."""
    url = url_of(hold.operation)
    page = browser.get(url).content.decode()
    whose = re.search(r"""hx-headers='(\{[^']*\})'""", page)
    assert whose is not None
    told = json.loads(whose[1])
    asked = {
        "dialog": (reverse("review_assign", args=[hold.pk]), "act"),
        "poll": (f"{url}?seen=x", "live"),
        "form": (reverse("review_snooze", args=[hold.pk]), "act"),
    }
    there, into = asked[what]
    headers = HTMX | told | {"HX-Target": into}
    assert browser.get(there, headers=headers).status_code == HTTPStatus.OK
    sign_in(browser, "reviewer_2")
    answer = browser.get(there, headers=headers)
    assert answer.status_code == HTTPStatus.CONFLICT
    assert answer["HX-Retarget"] == "#alerts"
    assert "this page was opened by another account" in answer.content.decode()


def test_signing_out_takes_any_tab(browser: Client, hold: Hold) -> None:
    client = Client()
    client.force_login(owner_of(hold.queue, "reviewer_2"))  # type: ignore[arg-type]
    assert client.post("/logout/", {"rendered_for": "0"})["Location"] == "/login/"


def test_the_forms_of_the_admin_carry_it_too(client: Client) -> None:
    admin = administrator()
    client.force_login(admin)
    page = client.get("/admin/workflows/tenant/add/").content.decode()
    assert hidden(page)["rendered_for"] == str(admin.pk)
    fields = {"name": "Southwind", "slug": "southwind", "rendered_for": str(admin.pk + 1)}
    answer = client.post("/admin/workflows/tenant/add/", fields)
    assert answer.status_code == HTTPStatus.CONFLICT
