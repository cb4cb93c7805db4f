"""The decision path in a real browser: htmx, scripts and content policy as people have them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

import pytest
from django.db import connections
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, expect, sync_playwright

from reconciliation.models import Decision, DecisionDraft, DecisionProposal, Operation
from tests.console.posting import url_of
from tests.deciding import seconder_of, two_needed
from tests.destination import RunningDestination
from tests.factories import (
    NOTE,
    advanced,
    held_operation,
    open_hold_of,
    person,
    ready_provider,
)
from tests.waiting import LIMIT_SECONDS, wait_for

pytestmark = pytest.mark.browser

# As everywhere in the tests, far beyond what it takes.
expect.set_options(timeout=1000 * LIMIT_SECONDS)
BROWSERS = Path(sys.prefix) / "browsers"  # where `make test` installs one
NO_CHROMIUM = (
    "there is no Chromium on this machine, and `make test` could not install one: "
    "install the system's (Debian: apt-get install chromium)"
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="module")
def browser(django_db_setup: None, django_db_blocker: Any) -> Iterator[Browser]:
    """A headless Chromium: this machine's, else the one that `make test` installs in its place."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    with django_db_blocker.unblock():
        connections.close_all()
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(BROWSERS))
        playwright = stack.enter_context(sync_playwright())
        # Playwright's own event loop runs in this thread while tests ask the database. Under it
        # Django keeps connections of its own: the one from before would stay open unseen.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        try:
            # As root there is no sandbox to be had; the pages are our own.
            launched = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        except Error as error:
            do_without(found, error)
        yield launched
        launched.close()


def do_without(found: str | None, error: Error) -> NoReturn:
    """Skip the tests in a browser where none is to be had; fail where one has to be."""
    said = error.message.strip().splitlines()[0]
    reason = f"{found} does not start: {said}" if found else f"{NO_CHROMIUM} ({said})"
    if found or os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def held(live_console: str, destination: RunningDestination) -> Operation:
    """A comment whose answer was lost, at a desk with neither key nor look-up."""
    ready_provider("desk", destination.url)
    return held_operation(destination)


@pytest.fixture
def page(browser: Browser, held: Operation, live_console: str) -> Iterator[Page]:
    """A page of `reviewer_1`, who is signed in. What goes wrong in it fails the test."""
    context = browser.new_context(base_url=live_console, viewport={"width": 1440, "height": 900})
    context.set_default_timeout(1000 * LIMIT_SECONDS)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda said: problems.extend(problem_of(said)))
    page.goto("/login/")
    page.get_by_label("Username").fill(person().username)
    page.get_by_label("Password").fill("reviewer_1")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/review/")
    yield page
    context.close()
    # A refused inline script or style is an error here too: the content policy is at work.
    assert problems == []


def problem_of(said: ConsoleMessage) -> list[str]:
    """What a page complains of, without the answers in words that it asked for: 404, 422."""
    expected = said.text.startswith("Failed to load resource")
    return [said.text] if said.type in ("error", "warning") and not expected else []


def test_an_owner_finds_the_case_decides_it_and_sees_the_run_go_on(
    page: Page, held: Operation
) -> None:
    page.get_by_role("link", name=held.summary).click()
    page.wait_for_url(f"**{url_of(held)}")
    expect(page.get_by_role("heading", level=1)).to_have_text(held.summary)
    expect(page.locator("#head")).to_contain_text("Outcome unknown")
    expect(page.locator("#sent")).to_contain_text("1 left this system with no usable answer")
    expect(page.get_by_text("cannot be asked")).to_be_visible()

    form = page.locator("form[data-decide]")
    record = form.locator("[data-commit]")
    expect(form.locator("input:checked")).to_have_count(0)
    expect(form.locator("#kind-send_again")).to_be_disabled()
    # Pressed too early, it says what is missing and sends nothing.
    expect(record).to_have_attribute("aria-disabled", "true")
    record.press("Enter")
    expect(page.locator("#missing")).to_contain_text("Still missing: a decision")
    assert not Decision.objects.exists()

    form.get_by_text("It is done: accept a record").click()
    form.get_by_label("Which record is the result?").fill("c_1")
    form.get_by_label("How do you know?").select_option("seen")
    form.get_by_label("Note for the record").fill(NOTE)
    form.get_by_label("Type the last 6 characters").fill(held.pk.hex[-6:].upper())
    expect(record).to_have_attribute("aria-disabled", "false")
    expect(record).to_contain_text("Record: it is done")
    record.click()

    expect(page.locator("#record")).to_contain_text(NOTE)
    expect(page.locator("#record-h")).to_be_focused()
    expect(page.locator("form[data-decide]")).to_have_count(0)
    expect(page.locator("#head")).to_contain_text("Applied")
    assert Decision.objects.get().kind == "applied"

    page.locator("#head summary", has_text="More").click()
    page.get_by_role("link", name="Open the run").click()
    expect(page.locator("#head")).to_contain_text("Ready")
    advanced(held.run)
    page.reload()
    expect(page.locator("#head")).to_contain_text("Completed")
    page.goto("/review/")
    expect(page.get_by_text("Nothing is held")).to_be_visible()


def test_a_refused_decision_leads_to_what_is_to_mend_and_keeps_what_was_typed(
    page: Page, held: Operation
) -> None:
    page.goto(url_of(held))
    form = page.locator("form[data-decide]")
    form.get_by_text("Keep holding").first.click()
    form.get_by_label("Until when? (UTC)").fill("2020-01-01T10:00")
    form.get_by_label("Note for the record").fill(NOTE)
    form.get_by_label("Type the last 6 characters").fill(held.pk.hex[-6:])
    form.locator("[data-commit]").click()
    expect(page.locator("#errors")).to_be_focused()
    expect(page.locator("#errors")).to_contain_text("not past")
    expect(page.get_by_label("Note for the record")).to_have_value(NOTE)
    expect(page.locator("#kind-keep_holding")).to_be_checked()
    assert not Decision.objects.exists()


def test_no_page_scrolls_sideways_in_either_theme(page: Page, held: Operation) -> None:
    for url in (
        "/review/",
        url_of(held),
        "/runs/",
        f"/runs/{held.run_id}/",
        "/runs/nowhere/",
        "/versions/",
    ):
        page.goto(url)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            for width in (1440, 390, 320):
                page.set_viewport_size({"width": width, "height": 844})
                expect(page.get_by_role("heading", level=1)).to_be_visible()
                surplus = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                assert surplus <= 0, (url, scheme, width)


def test_without_scripts_a_decision_is_recorded_all_the_same(
    browser: Browser, page: Page, held: Operation, live_console: str
) -> None:
    context = browser.new_context(
        base_url=live_console,
        java_script_enabled=False,
        storage_state=page.context.storage_state(),
    )
    plain = context.new_page()
    plain.goto(url_of(held))
    plain.locator("#kind-abandon").check()
    plain.get_by_label("Note for the record").fill(NOTE)
    plain.get_by_label("Type the last 6 characters").fill(held.pk.hex[-6:])
    plain.locator("form[data-decide] [data-commit]").click()
    plain.wait_for_url("**#record")
    expect(plain.locator("#record")).to_contain_text(NOTE)
    context.close()
    assert Decision.objects.get().kind == "abandon"


def signed_in(browser: Browser, address: str, name: str) -> Page:
    """Somebody else, in a browser of their own."""
    page = browser.new_context(base_url=address).new_page()
    page.set_default_timeout(1000 * LIMIT_SECONDS)
    page.goto("/login/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(name)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/review/")
    return page


def test_one_proposes_another_confirms_and_what_was_typed_is_not_lost(
    page: Page, browser: Browser, held: Operation, live_console: str
) -> None:
    hold = two_needed(open_hold_of(held))
    seconder_of(hold.queue)
    page.clock.install()
    page.goto(url_of(held))
    form = page.locator("form[data-decide]")
    form.get_by_text("It is done: accept a record").click()
    form.get_by_label("Which record is the result?").fill("c_1")
    form.get_by_label("Note for the record").fill(NOTE)
    page.clock.fast_forward(11_000)  # kept by itself while somebody types
    wait_for(lambda: DecisionDraft.objects.filter(typed__note=NOTE).exists(), "it is kept")
    page.reload()
    expect(form.get_by_label("Note for the record")).to_have_value(NOTE)
    expect(form.locator("#kind-applied")).to_be_checked()
    form.get_by_label("Type the last 6 characters").fill(held.pk.hex[-6:])
    # Enter is no decision: it keeps what is typed.
    form.get_by_label("Type the last 6 characters").press("Enter")
    expect(page.get_by_text("Draft saved")).to_be_visible()
    assert not DecisionProposal.objects.exists()
    form.get_by_role("button", name="Propose: it is done").click()
    expect(page.locator("#decide")).to_contain_text("You proposed this")
    assert not DecisionDraft.objects.exists()

    second = signed_in(browser, live_console, "second_1")
    second.goto(url_of(held))
    decide = second.locator("#decide")
    decide.get_by_role("button", name="Refuse and say why").click()
    expect(decide.locator("#errors")).to_contain_text("at least 20 characters")
    decide.get_by_label("Type the last 6 characters").fill(held.pk.hex[-6:])
    decide.get_by_role("button", name="Confirm and record: it is done").click()
    expect(second.locator("#record-h")).to_be_focused()
    expect(decide).to_contain_text("reviewer_1, confirmed by second_1")
    second.context.close()
    assert Decision.objects.get().second_name == "second_1"
