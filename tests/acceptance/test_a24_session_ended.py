"""Case A24: the session ends, and the login page must not appear inside a panel.

In a real browser: a filter, a preview, a region that polls, and a decision whose comment is typed.
`tests/console/test_accounts.py` has that no poll keeps a session alive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.contrib.sessions.models import Session
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect

from reconciliation.models import AuditEntry, Decision, Operation
from tests.console.posting import url_of
from tests.console.test_browser import browser, held  # noqa: F401 (fixtures)
from tests.factories import NOTE, person, started_run
from tests.waiting import LIMIT_SECONDS

pytestmark = pytest.mark.browser


@pytest.fixture
def page(browser: Browser, live_console: str) -> Iterator[Page]:  # noqa: F811
    context = browser.new_context(base_url=live_console, viewport={"width": 1440, "height": 900})
    context.set_default_timeout(1000 * LIMIT_SECONDS)
    page = context.new_page()
    page.goto("/login/")
    sign_in(page, "Sign in")
    page.wait_for_url("**/review/")
    yield page
    context.close()


def sign_in(page: Page, button: str) -> None:
    page.get_by_label("Username").fill(person().username)
    page.get_by_label("Password").fill("reviewer_1")
    page.get_by_role("button", name=button).click()


def filtered(page: Page) -> None:
    page.get_by_role("link", name="Overdue").first.click()


def previewed(page: Page) -> None:
    page.locator("[data-preview]").first.click()


def polled(page: Page) -> None:
    """Its turn comes without anybody's doing."""


def decided(page: Page) -> None:
    form = page.locator("form[data-decide]")
    form.get_by_text("It is done: accept a record").click()
    form.get_by_label("Which record is the result?").fill("c_1")
    form.get_by_label("Note for the record").fill(NOTE)
    form.get_by_label("Type the last 6 characters").fill(page.url.rstrip("/")[-6:])
    form.locator("[data-commit]").click()


def of_operation(held: Operation) -> str:  # noqa: F811
    return url_of(held)


def of_run(_: Operation) -> str:
    """One that moves, whose page polls every few seconds."""
    return reverse("run", args=[started_run("ticket_triage").pk])


def of_queue(_: Operation) -> str:
    return reverse("review")


@pytest.mark.parametrize(
    ("where", "press"),
    [(of_queue, filtered), (of_queue, previewed), (of_run, polled), (of_operation, decided)],
)
def test_the_whole_page_goes_to_login_and_comes_back_to_the_same_place(
    page: Page,
    held: Operation,  # noqa: F811
    where: Callable[[Operation], str],
    press: Callable[[Page], None],
) -> None:
    path = where(held)
    page.goto(path)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    Session.objects.all().delete()
    recorded = AuditEntry.objects.count()
    press(page)
    page.wait_for_url("**/login/?**")
    expect(page.locator("main")).to_have_count(1)  # no page within a page
    expect(page.get_by_role("heading", level=1)).to_have_text("You were signed out")
    expect(page.get_by_text("was not recorded in your name")).to_be_visible()
    assert not Decision.objects.exists()
    assert AuditEntry.objects.count() == recorded
    # The login page asks nothing by itself, so no session is begun or kept by it.
    assert page.locator("[hx-trigger*=every]").count() == 0
    assert not Session.objects.exists()
    sign_in(page, "Sign in and go back")
    page.wait_for_url(f"**{path}")
    if press is decided:
        expect(page.get_by_label("Note for the record")).to_have_value(NOTE)
