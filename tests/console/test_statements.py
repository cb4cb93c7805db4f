"""What a page asks of the database: so much at most, however much there is to show.

An administrator walks through every page that can be reached from the first one, and through each
part of them that htmx asks for. Of an administrator no rights are asked, of others with one
statement more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from urllib.parse import urljoin, urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import resolve, reverse

from reconciliation.models import Hold, Provider
from tests.approving import aged, answered, approver, proposed
from tests.console.hostile import said_everywhere
from tests.console.walking import Reading, walked
from tests.destination import RunningDestination
from tests.factories import PERSONALITIES, advanced, person, quick_contract, started_run
from tests.statements import statements
from workflows.models import Attempt, Run

pytestmark = pytest.mark.django_db

AT_MOST = 12
RIGHTS = 1  # the statement that an administrator does not need
ADMINISTRATION = ("admin", "rights")  # set up now and then, by few


def test_no_page_asks_more_than_a_dozen_times(
    destination: RunningDestination, admin_client: Client
) -> None:
    said_everywhere(destination)
    for number in range(3):
        person_of(number)
        advanced(started_run("refund"))
    first = asked_of_people()
    assert Run.objects.count() > 3
    assert Attempt.objects.exists()
    read = walked(admin_client, of_each_kind=3, first=first, counts=counts)
    assert len(read) > 30
    assert set(first) <= read.keys()
    asked = {path: page.statements for path, page in read.items()}
    asked |= {f"{path} #{into}": number for path, into, number in of_fragments(admin_client, read)}
    too_many = {path: number for path, number in asked.items() if number > AT_MOST - RIGHTS}
    assert too_many == {}


def asked_of_people() -> list[str]:
    """The pages of a proposal that is open, and of a write that is held since its approval lapsed;
    both ask the boundary."""
    contract = quick_contract(PERSONALITIES["payments"])
    Provider.objects.filter(slug="payments").update(contract_version=contract)
    _, asks = proposed()
    run, approved = proposed()
    answered(approved, approver())
    aged(approved, timedelta(days=2))
    advanced(run)
    held = Hold.objects.get(run=run, state="open")
    assert held.reason == "authorisation_lapsed"
    return [reverse("approval", args=[asks.pk]), reverse("operation", args=[held.operation_id])]


def person_of(number: int) -> User:
    return person(f"colleague_{number}")


def counts(path: str) -> bool:
    view = resolve(urlsplit(path).path)
    return view.namespace not in ADMINISTRATION and not (view.url_name or "").startswith("rights")


def of_fragments(client: Client, read: Mapping[str, Reading]) -> Iterator[tuple[str, str, int]]:
    """Each part that the pages of `read` ask for by htmx, and how many statements it takes."""
    asked = {
        (urljoin(path, where), into)
        for path, page in read.items()
        for where, into in page.fragments
    }
    for where, into in sorted(asked):
        headers = {"HX-Request": "true", "HX-Target": into}
        with statements() as sent:
            answer = client.get(where, headers=headers)
        assert answer.status_code < 400, f"{where}: {answer.status_code}"
        yield where, into, len(sent)
