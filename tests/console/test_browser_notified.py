"""From the message in a mailbox to the recorded decision, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect
from pytest_django import Settings

from reconciliation.models import Decision
from tests.console.test_browser import browser  # noqa: F401 (the fixture)
from tests.destination import RunningDestination
from tests.factories import NOTE, held_operation, ready_provider
from tests.receiving import Mailbox, mail_server
from tests.telling import owner, told

pytestmark = pytest.mark.browser


@pytest.fixture
def mailbox(settings: Settings, live_console: str) -> Iterator[Mailbox]:
    with mail_server() as box:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", box.port
        settings.EMAIL_USE_TLS = False
        settings.ROMULUS_CONSOLE_URL = live_console
        yield box


def test_an_owner_is_told_signs_in_by_the_link_and_decides(
    browser: Browser,  # noqa: F811
    destination: RunningDestination,
    mailbox: Mailbox,
) -> None:
    queue = ready_provider("desk", destination.url).default_queue
    assert queue is not None
    owner(queue)
    held = held_operation(destination)
    told()
    assert mailbox.stored[0]["Subject"] == f"Held: {held.summary}"
    found = re.search(r"http://\S+", mailbox.text())
    assert found

    context = browser.new_context(viewport={"width": 390, "height": 844})  # at night, on a phone
    page = context.new_page()
    page.goto(found[0])
    page.get_by_label("Username").fill("reviewer_1")
    page.get_by_label("Password").fill("reviewer_1")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(found[0])
    expect(page.get_by_role("heading", level=1)).to_have_text(held.summary)
    assert not Decision.objects.exists()

    form = page.locator("form[data-decide]")
    form.get_by_text("It is done: accept a record").click()
    form.get_by_label("Which record is the result?").fill("c_1")
    form.get_by_label("How do you know?").select_option("seen")
    form.get_by_label("Note for the record").fill(NOTE)
    form.get_by_label("Type the last 6 characters").fill(held.pk.hex[-6:])
    form.get_by_role("button", name="Record").click()
    expect(page.locator("#record")).to_contain_text(NOTE)
    context.close()
    assert Decision.objects.get().kind == "applied"
