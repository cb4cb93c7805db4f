"""Case A20: a double click, the back button, and links that machines open before people do.

Shrunk: the two clicks come together, which leaves less time between them than 60 ms. Opened are
the links of the notifications themselves, those of the pages that they lead to, and every other one
on these. Of approvals: `test_a20_approvals`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from reconciliation.models import (
    AuditEntry,
    Decision,
    DecisionDraft,
    DecisionProposal,
    Hold,
    Operation,
    ProposalEnd,
)
from tests.console.posting import filled, form_at, url_of
from tests.deciding import seconder_of, two_needed
from tests.destination import RunningDestination
from tests.factories import held_operation, open_hold_of, person, ready_provider
from tests.racing import at_once
from tests.telling import told, with_mail
from workflows.models import Run

pytestmark = pytest.mark.usefixtures("committed_db")

CONSOLE = "https://romulus.example.com"

IN_MAIL = re.compile(re.escape(CONSOLE) + r"[^\s\"<>)]*")
LINK = re.compile(r'(?:href|action|hx-get|hx-post|formaction)="(/[^"#]*)')
RECORDED = (Decision, DecisionProposal, ProposalEnd, DecisionDraft, AuditEntry)


@pytest.fixture
def held(destination: RunningDestination, settings: Settings) -> Operation:
    settings.ROMULUS_CONSOLE_URL = CONSOLE
    with_mail(person())
    ready_provider("desk", destination.url)
    return held_operation(destination)


@pytest.fixture
def owner(held: Operation) -> Client:
    client = Client()
    client.force_login(person())
    return client


def test_two_clicks_land_on_one_result(owner: Client, held: Operation) -> None:
    form = form_at(owner, url_of(held))
    given = filled(form, "applied")
    answers = at_once(*[lambda: owner.post(form.url, given)] * 2)
    assert {(each.status_code, each["Location"]) for each in answers} == {
        (HTTPStatus.SEE_OTHER, f"{url_of(held)}#record")
    }
    assert Decision.objects.count() == 1


def test_two_clicks_propose_once_and_confirm_once(owner: Client, held: Operation) -> None:
    hold = two_needed(open_hold_of(held))
    form = form_at(owner, url_of(held))
    given = filled(form, "applied")
    for answer in at_once(*[lambda: owner.post(form.url, given)] * 2):
        assert answer.status_code == HTTPStatus.SEE_OTHER
    second = Client()
    second.force_login(seconder_of(hold.queue))
    shown = second.get(url_of(held)).context["page"].proposal.form
    confirms = {
        "verdict": "confirm",
        "version": shown.version,
        "token": shown.token,
        "code": shown.code,
    }
    for answer in at_once(*[lambda: second.post(shown.url, confirms)] * 2):
        assert answer.status_code == HTTPStatus.SEE_OTHER
    assert [model.objects.count() for model in RECORDED[:3]] == [1, 1, 1]


def test_a_changed_mind_after_going_back_is_refused_as_already_decided(
    owner: Client, held: Operation
) -> None:
    form = form_at(owner, url_of(held))
    owner.post(form.url, filled(form, "applied"))
    # The same form, out of the browser's history, with the other choice: it says what it did.
    again = owner.post(form.url, filled(form, "abandon"))
    assert again.status_code == HTTPStatus.SEE_OTHER
    # And one that was open in another tab.
    anew = filled(form, "abandon", token=f"{form.token[:33]}{'0' * 31}1")
    refused = owner.post(form.url, anew)
    assert refused.status_code == HTTPStatus.CONFLICT
    assert "reviewer_1 decided before you" in refused.content.decode()
    assert Decision.objects.get().kind == "applied"


def links_on(client: Client, *pages: str) -> Iterator[str]:
    for page in pages:
        yield page
        found = LINK.findall(client.get(page).content.decode())
        yield from (link for link in found if not link.startswith("/static/"))


def links_in_mail() -> set[str]:
    """Where everything leads that people were told by mail, as machines find it in there."""
    told()
    bodies = [
        *(sent.body for sent in mail.outbox),
        *(kind.content for sent in mail.outbox for kind in sent.alternatives),  # type: ignore[attr-defined]
    ]
    found = {link for body in bodies for link in IN_MAIL.findall(str(body))}
    return {urlsplit(link).path for link in found}


def snapshot() -> list[Any]:
    """Everything that a link could decide, claim, use up or let go on."""
    rows = [list(model.objects.order_by("pk").values()) for model in RECORDED]
    return [*rows, list(Hold.objects.values()), list(Run.objects.values())]


def test_opening_every_link_with_and_without_a_session_changes_nothing(
    owner: Client, held: Operation
) -> None:
    two_needed(open_hold_of(held))
    form = form_at(owner, url_of(held))
    owner.post(form.url, filled(form, "applied"))
    notified = links_in_mail()
    assert url_of(held) in notified
    deep = [*notified, reverse("review"), reverse("run", args=[held.run_id])]
    own = {
        reverse(f"operation_{name}", args=[held.pk])
        for name in ("decide", "second", "correct", "draft", "ask")
    }
    links = sorted({*links_on(owner, *deep), *own} - {reverse("logout")})
    assert own <= set(links)
    before = snapshot()
    for client in (owner, Client()):
        for link in links:
            for method in (client.get, client.head):
                assert method(link).status_code < HTTPStatus.INTERNAL_SERVER_ERROR
    assert snapshot() == before
