"""Asking a provider that takes its time: each source says *Asking*, then its own answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from django.db import transaction
from playwright.sync_api import Browser, Page, expect

from reconciliation.models import Evidence, LookUpPace, Operation
from tests.console.posting import url_of
from tests.console.test_browser import browser, problem_of  # noqa: F401 (the fixture)
from tests.destination import RunningDestination
from tests.factories import person, quick_contract, ready_provider, settled, started_run
from tests.waiting import LIMIT_SECONDS

pytestmark = pytest.mark.browser


# A question may take as long as the test does, and still a person has the case at once.
PATIENT = {"timeout_seconds": LIMIT_SECONDS}
HELD_SOON = {"first_pause_seconds": 0.01, "longest_pause_seconds": 0.02, "elapsed_seconds": 0.5}


@pytest.fixture
def away(live_console: str, destination: RunningDestination) -> Operation:
    """A machine that was made, whose answer was lost, at a provider whose look-up was away."""
    contract = quick_contract("lookup", **PATIENT, budget=HELD_SOON)
    ready_provider("machines", destination.url, contract_version=contract)
    destination.client.arm("apply_then_drop")
    destination.client.arm("lookup_unavailable", times=None)
    operation = Operation.objects.get(run=settled(started_run("replacement_worker")))
    Evidence.objects.create(operation=operation, kind="unavailable", source="look-up")
    destination.client.disarm()
    return operation


@pytest.fixture
def pages(browser: Browser, away: Operation, live_console: str) -> Iterator[tuple[Page, Page]]:  # noqa: F811
    """The case twice, before the same owner."""
    with ExitStack() as stack:
        context = stack.enter_context(browser.new_context(base_url=live_console))
        context.set_default_timeout(1000 * LIMIT_SECONDS)
        first, second = context.new_page(), context.new_page()
        problems: list[str] = []
        first.on("console", lambda said: problems.extend(problem_of(said)))
        first.goto("/login/")
        first.get_by_label("Username").fill(person().username)
        first.get_by_label("Password").fill("reviewer_1")
        first.get_by_role("button", name="Sign in").click()
        first.wait_for_url("**/review/")
        for page in (first, second):
            page.goto(url_of(away))
        yield first, second
        assert problems == []


def test_a_source_says_that_it_is_asked_and_keeps_its_old_answer_until_the_new_one_comes(
    pages: tuple[Page, Page], away: Operation
) -> None:
    page, other = pages
    cards = page.locator("#evidence-cards")
    old = cards.get_by_text("Our question got no usable answer")
    expect(old).to_be_visible()
    expect(cards.get_by_text("Asking")).to_have_count(0)

    with transaction.atomic():
        # Asking counts as a turn of the provider's, and so waits for this row.
        assert list(LookUpPace.objects.select_for_update())
        page.get_by_role("button", name="Ask the provider again").click()
        expect(page.get_by_role("button", name="Asking…")).to_be_disabled()
        # By itself, and while the question is open.
        expect(cards.get_by_text("Asking")).to_have_count(1)
        expect(old).to_be_visible()

        # Others see it as well.
        other.reload()
        expect(other.locator("#evidence-cards").get_by_text("Asking")).to_have_count(1)

    for cards in (page.locator("#evidence-cards"), other.locator("#evidence-cards")):
        expect(cards.get_by_text("A record that carries our ID")).to_be_visible()
        expect(cards.get_by_text("Asking")).to_have_count(0)
    assert Operation.objects.get(pk=away.pk).state == "applied"
