"""What people read where something broke or is not there: what to quote, and the way on."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.factories import person
from workflows.models.ids import new_id

pytestmark = pytest.mark.django_db

SECRET = "sk_live_marker_of_a_secret"


@pytest.fixture
def reads(client: Client) -> Client:
    client.force_login(person())
    client.raise_request_exception = False
    return client


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr("reconciliation.views.search.search_page", fails)


@pytest.mark.usefixtures("broken")
def test_what_broke_is_quoted_by_a_reference_that_the_log_has(
    reads: Client, caplog: pytest.LogCaptureFixture
) -> None:
    answer = reads.get("/search/?q=ORD-1")
    assert answer.status_code == HTTPStatus.INTERNAL_SERVER_ERROR
    text = answer.content.decode()
    (reference,) = re.findall(r"<code>(err_[0-9a-f]{10})</code>", text)
    assert reference in caplog.text
    assert 'href="/search/?q=ORD-1"' in text
    assert SECRET not in text


def test_what_is_not_there_leads_to_the_queue(reads: Client) -> None:
    answer = reads.get(reverse("operation", args=[new_id()]))
    assert answer.status_code == HTTPStatus.NOT_FOUND
    assert f'href="{reverse("review")}">Review queue' in answer.content.decode()


def test_a_form_in_letters_that_no_form_is_sent_in_is_refused_and_breaks_nothing(
    reads: Client,
) -> None:
    kind = "application/x-www-form-urlencoded; charset=utf-16"
    answer = reads.post(reverse("profile"), "letters=on", content_type=kind)
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert "Nothing was sent and nothing was decided" in answer.content.decode()
