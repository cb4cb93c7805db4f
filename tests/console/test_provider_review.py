"""The page that reviews a contract which a provider was seen to break."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.html import escape
from guardian.shortcuts import assign_perm

from reconciliation.models import AuditEntry, Hold, Provider
from tests.destination import RunningDestination
from tests.factories import administrator, person, ready_provider, settled, started_run, stranger
from tests.statements import statements
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db

URL, BACK = "/providers/payments/review/", "/providers/payments/"
WHY = "Their support confirms a fault of 2 March, ticket 4711."


@pytest.fixture
def provider(destination: RunningDestination) -> Provider:
    return ready_provider(
        "payments",
        destination.url,
        contradicted_at=database_now(),
        contradiction="two for one key",
    )


@pytest.fixture
def configurer(client: Client, provider: Provider) -> Client:
    user = person("setter_1")
    assign_perm("reconciliation.configure", user, provider)
    client.force_login(user)
    return client


def posted(client: Client, **changes: str) -> Any:
    """What somebody sends who has just opened the page."""
    given = {"shown": client.get(URL).context["page"].shown, "note": WHY}
    return client.post(URL, given | changes)


def is_stopped() -> bool:
    return Provider.objects.get().contradicted_at is not None


def test_it_is_reviewed_once_and_looking_reviews_nothing(configurer: Client) -> None:
    first = configurer.get(URL)
    text = first.content.decode()
    for said in ("two for one key", "It sends nothing", "shown by the tests", "csrfmiddleware"):
        assert said in text
    # The consequences come before the button.
    assert text.index("What a review does") < text.index(f'action="{URL}"')
    configurer.head(URL)
    configurer.get(URL, {"shown": first.context["page"].shown, "note": WHY})
    assert is_stopped()
    answer = posted(configurer)
    assert (answer.status_code, answer["Location"]) == (HTTPStatus.SEE_OTHER, BACK)
    assert not is_stopped()
    again = configurer.post(URL, {"shown": first.context["page"].shown, "note": WHY})
    assert again.status_code == HTTPStatus.CONFLICT
    assert "setter_1 has reviewed it already" in again.content.decode()
    assert f'action="{URL}"' not in again.content.decode()
    assert AuditEntry.objects.filter(verb="reviewed contradiction").count() == 1
    assert "broke its contract" not in configurer.get(BACK).content.decode()


@pytest.mark.parametrize(
    ("changes", "field"), [({"note": "fine"}, "note"), ({"shown": "soon"}, "shown")]
)
def test_what_is_wrong_is_said_at_its_field(
    configurer: Client, changes: dict[str, str], field: str
) -> None:
    answer = posted(configurer, **changes)
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert list(answer.context["errors"]) == [field]
    assert changes.get("note", WHY) in answer.content.decode()
    assert is_stopped()


def test_another_contradiction_is_read_before_it_is_reviewed(configurer: Client) -> None:
    shown = configurer.get(URL).context["page"].shown
    later = database_now() + timedelta(seconds=1)
    Provider.objects.update(contradicted_at=later, contradiction="a third one")
    answer = posted(configurer, shown=shown)
    assert answer.status_code == HTTPStatus.CONFLICT
    text = answer.content.decode()
    assert "once more since you opened this form" in text
    assert "a third one" in text
    assert WHY in text  # what was typed is still there
    assert is_stopped()
    anew = answer.context["page"].shown
    assert posted(configurer, shown=anew).status_code == HTTPStatus.SEE_OTHER


def test_who_may_not_set_it_up_reads_why_not(client: Client, provider: Provider) -> None:
    user = person("viewer_1")
    assign_perm("reconciliation.view_provider", user, provider)
    client.force_login(user)
    text = client.get(URL).content.decode()
    assert "You may not set this provider up" in text
    assert "What a review does" in text
    assert 'name="note"' not in text
    assert posted(client).status_code == HTTPStatus.FORBIDDEN
    assert posted(client, note="").status_code == HTTPStatus.FORBIDDEN
    assert is_stopped()


def test_a_foreign_provider_answers_like_a_missing_one(client: Client, provider: Provider) -> None:
    client.force_login(stranger())
    for url in (URL, "/providers/none/review/"):
        assert client.get(url).status_code == HTTPStatus.NOT_FOUND
        assert client.post(url, {"note": WHY}).status_code == HTTPStatus.NOT_FOUND
    client.logout()
    assert client.get(URL).status_code == HTTPStatus.FOUND
    assert is_stopped()


def test_a_form_from_elsewhere_reviews_nothing(provider: Provider) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(administrator())
    assert posted(client).status_code == HTTPStatus.FORBIDDEN
    assert is_stopped()


def test_a_provider_that_kept_its_contract_has_nothing_to_review(client: Client) -> None:
    ready_provider("payments")
    client.force_login(administrator())
    assert "There is nothing to review" in client.get(URL).content.decode()
    assert BACK in client.get(URL).content.decode()
    assert "review" not in client.get(BACK).context["page"].contradiction


def test_it_names_what_is_held_for_it_in_so_many_statements(
    configurer: Client, destination: RunningDestination
) -> None:
    destination.client.arm("apply_then_drop")
    settled(started_run("refund"))
    hold = Hold.objects.get(reason="contract_contradicted")
    assert configurer.get(URL).context["page"].held == 0  # not theirs to see
    client = Client()
    client.force_login(administrator())
    with statements() as asked:
        page = client.get(URL).context["page"]
    assert len(asked) <= 12
    (row,) = page.rows
    assert hold.operation is not None
    assert (page.held, row.operation.text) == (1, hold.operation.summary)
    assert row.operation.url == reverse("operation", args=[hold.operation_id])
    assert "1 write held for this stays held" in client.get(URL).content.decode()


def test_markup_of_others_is_shown_as_text(configurer: Client) -> None:
    markup = "<img src=x onerror=1>"
    Provider.objects.update(name=markup, contradiction=markup, replay_trust=markup)
    texts = [
        configurer.get(URL).content.decode(),
        posted(configurer, note="short").content.decode(),
    ]
    for text in texts:
        assert markup not in text
        assert escape(markup) in text
