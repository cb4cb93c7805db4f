"""What of an account needs a real browser: passkeys, two tabs, a session that ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from playwright.sync_api import Browser, BrowserContext, Page, expect

from reconciliation.models import Decision, Operation
from tests.console.posting import url_of
from tests.console.test_browser import browser, held, problem_of  # noqa: F401 (fixtures)
from tests.factories import NOTE, owner_of, person

pytestmark = pytest.mark.browser

# An authenticator of the browser's own, that finds whoever sits there to be who they are.
AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@pytest.fixture
def context(browser: Browser, live_console: str) -> Iterator[BrowserContext]:  # noqa: F811
    # By name: browsers give no passkey to an address.
    base = live_console.replace("127.0.0.1", "localhost")
    context = browser.new_context(base_url=base, viewport={"width": 1440, "height": 900})
    problems: list[str] = []
    context.on("weberror", lambda error: problems.append(str(error.error)))
    context.on("console", lambda said: problems.extend(problem_of(said)))
    yield context
    context.close()
    assert problems == []


def sign_in(page: Page, name: str) -> None:
    page.goto("/login/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(name)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/review/")


def test_a_passkey_is_added_and_then_lets_in_by_itself(context: BrowserContext) -> None:
    person()
    page = context.new_page()
    devtools = context.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    devtools.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
    sign_in(page, "reviewer_1")
    page.goto("/account/factors/passkeys/add/")
    page.get_by_label("Password").fill("reviewer_1")
    page.get_by_role("button", name="Confirm").click()
    page.get_by_label("Passwordless").check()
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Recovery codes")
    assert Authenticator.objects.filter(type="webauthn").count() == 1

    page.locator("summary.me").click()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/login/")
    page.get_by_role("button", name="Use a passkey instead").click()
    page.wait_for_url("**/review/")
    expect(page.locator("summary.me")).to_contain_text("reviewer_1")


def test_the_other_tab_decides_nothing_under_the_new_name(
    context: BrowserContext,
    held: Operation,  # noqa: F811
) -> None:
    owner_of(held.holds.get().queue, "reviewer_2")  # type: ignore[arg-type]
    first = context.new_page()
    sign_in(first, "reviewer_1")
    first.goto(url_of(held))
    fill(first, held)
    become(context, "reviewer_2")

    first.locator("form[data-decide] [data-commit]").click()
    expect(first.locator("#alerts")).to_contain_text("You are signed in as reviewer_2 now")
    expect(first.get_by_label("Note for the record")).to_have_value(NOTE)
    assert not Decision.objects.exists()


def become(context: BrowserContext, name: str) -> None:
    """Sign in as somebody else, in another tab."""
    page = context.new_page()
    page.goto("/account/sessions/")
    page.locator("summary.me").click()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/login/")
    sign_in(page, name)


def test_nor_is_it_given_a_dialog_in_which_the_other_would_act(
    context: BrowserContext,
    held: Operation,  # noqa: F811
) -> None:
    """The page names whoever opened it; what is pressed there is not to count for another."""
    owner_of(held.holds.get().queue, "reviewer_2")  # type: ignore[arg-type]
    first = context.new_page()
    sign_in(first, "reviewer_1")
    first.goto(url_of(held))
    become(context, "reviewer_2")
    first.get_by_role("link", name="Snooze").click()
    expect(first.locator("#alerts")).to_contain_text("You are signed in as reviewer_2 now")
    expect(first.locator("dialog[open]")).to_have_count(0)


def fill(page: Page, operation: Operation) -> None:
    page.locator("#kind-abandon").check()
    page.get_by_label("Note for the record").fill(NOTE)
    page.get_by_label("Type the last 6 characters").fill(operation.pk.hex[-6:])


def test_a_session_that_has_ended_leads_to_the_login_page_and_back(
    context: BrowserContext,
    held: Operation,  # noqa: F811
) -> None:
    """Case A24: nothing is recorded, no page stands in a panel, what was typed is there again."""
    page = context.new_page()
    sign_in(page, "reviewer_1")
    page.goto(url_of(held))
    fill(page, held)
    Session.objects.all().delete()
    page.locator("form[data-decide] [data-commit]").click()
    page.wait_for_url("**/login/?**")
    expect(page.get_by_role("heading", level=1)).to_have_text("You were signed out")
    expect(page.get_by_text("was not recorded in your name")).to_be_visible()
    assert not Decision.objects.exists()
    page.get_by_label("Username").fill("reviewer_1")
    page.get_by_label("Password").fill("reviewer_1")
    page.get_by_role("button", name="Sign in and go back").click()
    page.wait_for_url(f"**{url_of(held)}")
    expect(page.get_by_label("Note for the record")).to_have_value(NOTE)
    assert UserSession.objects.count() == 1


def test_the_end_of_a_session_is_said_on_an_open_page_and_can_be_put_off(
    context: BrowserContext, settings: Any
) -> None:
    settings.SESSION_COOKIE_AGE = 123
    person()
    page = context.new_page()
    sign_in(page, "reviewer_1")
    banner = page.locator("#session-end")
    expect(banner).to_contain_text("Your session ends at")
    expect(banner).to_be_visible()
    settings.SESSION_COOKIE_AGE = 3600
    page.get_by_role("button", name="Stay signed in").click()
    expect(banner).to_be_hidden()


def test_account_pages_fit_every_width(context: BrowserContext) -> None:
    person()
    page = context.new_page()
    page.goto("/login/")
    urls = ["/login/", "/account/reset/"]
    own = ["/account/factors/", "/account/sessions/", "/account/password/"]
    for url in urls + own:
        if url == own[0]:
            sign_in(page, "reviewer_1")
        page.goto(url)
        for width in (1440, 390, 320):
            page.set_viewport_size({"width": width, "height": 844})
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            surplus = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert surplus <= 0, (url, width)
            shot(page, f"{url.strip('/').replace('/', '-')}-{width}.png")


def shot(page: Page, name: str) -> None:
    """Kept where ROMULUS_SHOTS names a folder, to be looked at."""
    if folder := os.environ.get("ROMULUS_SHOTS"):
        page.screenshot(path=Path(folder) / name)
