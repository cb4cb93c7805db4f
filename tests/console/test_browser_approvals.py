"""A proposal is approved in a real browser, and the write goes out by it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.approving import approver, proposed
from tests.console.test_browser import browser, problem_of  # noqa: F401 (the fixture)
from tests.destination import RunningDestination
from tests.factories import advanced, ready_provider
from tests.sending import effects
from workflows.models import Proposal, Run

pytestmark = pytest.mark.browser


@pytest.fixture
def asked(live_console: str, destination: RunningDestination) -> tuple[Run, Proposal]:
    ready_provider("payments", destination.url)
    return proposed(reason="The parcel never arrived.")


@pytest.fixture
def page(
    browser: Browser,  # noqa: F811
    asked: tuple[Run, Proposal],
    live_console: str,
) -> Iterator[Page]:
    """A page of `approver_1`, on a phone. What goes wrong in it fails the test."""
    approver()
    context = browser.new_context(base_url=live_console, viewport={"width": 390, "height": 844})
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda said: problems.extend(problem_of(said)))
    page.goto("/login/")
    page.get_by_label("Username").fill("approver_1")
    page.get_by_label("Password").fill("approver_1")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/review/")
    yield page
    context.close()
    assert problems == []


def test_it_is_proposed_approved_and_sent(
    page: Page, asked: tuple[Run, Proposal], destination: RunningDestination
) -> None:
    run, proposal = asked
    page.goto("/approvals/")
    wide = page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    page.get_by_role("link", name=proposal.summary).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(proposal.summary)
    main = page.get_by_role("main")
    expect(main).to_contain_text("USD 125.00")
    expect(main).to_contain_text("The parcel never arrived.")
    expect(main).to_contain_text("workflow approved_refund")
    wide = wide or page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    assert not wide, "the page scrolls sideways"
    answer = page.locator("#answer")
    answer.get_by_text("Deny it").click()
    answer.get_by_role("button", name="Record my answer").click()
    expect(answer.locator("#errors")).to_contain_text("Write at least")
    answer.get_by_text("Approve it").click()
    answer.get_by_role("button", name="Record my answer").click()
    expect(page.locator("#head")).to_contain_text("Approved")
    expect(page.locator("#answers")).to_contain_text("approver_1")
    assert effects(destination) == 0
    assert advanced(run).state == "completed"
    assert effects(destination) == 1
    page.reload()
    expect(main).to_contain_text("the write was begun with it")
    expect(main).to_contain_text("Just before the write: Approved by person approver_1.")
