"""Events and waits in a real browser: what came close is compared, attached, dismissed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from guardian.shortcuts import assign_perm
from playwright.sync_api import Browser, Page, expect

from tests.console.test_browser import browser, problem_of  # noqa: F401 (the fixture)
from tests.events import TYPE, delivered, wait_of, waiting
from tests.factories import person, tenant
from workflows.models import Run
from workflows.services.event_items import dismiss

pytestmark = pytest.mark.browser

WHY = "The supplier said so on the telephone."
MARKUP = "<img src=x onerror=document.title='owned'>"


@pytest.fixture
def run(live_console: str) -> Run:
    return waiting(correlation="PO-10077")


@pytest.fixture
def page(browser: Browser, run: Run, live_console: str) -> Iterator[Page]:  # noqa: F811
    """A page of `operator_1`, who may act on events. What goes wrong in it fails the test."""
    user = person("operator_1")
    for right in ("view_tenant", "view_payloads", "control_runs"):
        assign_perm(f"workflows.{right}", user, tenant())
    context = browser.new_context(base_url=live_console, viewport={"width": 1440, "height": 900})
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda said: problems.extend(problem_of(said)))
    page.goto("/login/")
    page.get_by_label("Username").fill("operator_1")
    page.get_by_label("Password").fill("operator_1")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/review/")
    yield page
    context.close()
    assert problems == []


def test_what_came_close_is_compared_and_attached_with_a_reason(page: Page, run: Run) -> None:
    delivered("po-10077")
    delivered("PO10077", event_id="evt_hyphen")
    page.goto("/events/")
    near = page.locator("#near")
    expect(near).to_contain_text("Only upper and lower case differ.")
    near.get_by_role("link", name="Only one character differs.").click()
    expect(near.locator("mark").first).to_have_text("-")
    near.get_by_role("link", name="Open the event").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(TYPE)
    page.get_by_role("link", name="Attach to a wait…").click()
    dialog = page.locator("dialog#confirm")
    expect(dialog).to_contain_text("The run goes on with it at once")
    # The safe way out has the focus, and nothing is chosen for anybody.
    expect(dialog.get_by_text("Leave it as it is")).to_be_focused()
    expect(dialog.locator("input:checked")).to_have_count(0)
    dialog.get_by_role("button", name="Attach it").click()
    expect(dialog.locator("#errors")).to_be_focused()
    dialog.locator("input[name=wait]").check()
    dialog.get_by_label("How do you know").fill(WHY)
    dialog.get_by_role("button", name="Attach it").click()
    expect(page.locator("#head")).to_contain_text("Matched")
    expect(page.get_by_role("main")).to_contain_text(f"operator_1 attached it by hand: {WHY}")
    assert wait_of(run).state == "resolved"


def test_filters_swap_the_inbox_and_who_comes_second_is_told(page: Page) -> None:
    event = delivered("elsewhere").event
    delivered("x", problem="no ID")
    page.goto("/events/")
    inbox = page.locator("#inbox")
    expect(inbox.locator("tbody tr")).to_have_count(2)
    page.locator("#tally-stored").click()
    expect(inbox.locator("tbody tr")).to_have_count(1)
    expect(page.locator("#tally-stored")).to_have_attribute("aria-current", "true")
    page.wait_for_url("**/events/?state=stored")
    inbox.get_by_role("link", name=TYPE).click()
    page.get_by_role("link", name="Dismiss…").click()
    dialog = page.locator("dialog#confirm")
    dialog.get_by_label("Why?").fill(WHY)
    dismiss(event, by="user:99 ada", reason="Mine.")
    dialog.get_by_role("button", name="Dismiss it").click()
    expect(dialog).to_contain_text("ada dismissed it first")
    dialog.get_by_role("link", name="Open the event as it is now").click()
    expect(page.locator("#head")).to_contain_text("Dismissed")


def test_without_scripts_an_event_is_dismissed_all_the_same(
    browser: Browser,  # noqa: F811
    page: Page,
    live_console: str,
) -> None:
    event = delivered("elsewhere").event
    context = browser.new_context(
        base_url=live_console,
        java_script_enabled=False,
        storage_state=page.context.storage_state(),
    )
    plain = context.new_page()
    plain.goto("/events/")
    plain.locator("#inbox").get_by_role("link", name=TYPE).click()
    plain.get_by_role("link", name="Dismiss…").click()
    plain.wait_for_url(f"**/events/{event}/dismiss/")
    plain.get_by_label("Why?").fill(WHY)
    plain.get_by_role("button", name="Dismiss it").click()
    plain.wait_for_url(f"**/events/{event}/")
    expect(plain.locator("#head")).to_contain_text("Dismissed")
    context.close()


def test_no_page_of_events_scrolls_sideways_or_runs_markup(page: Page, run: Run) -> None:
    long = "order/" + "0123456789" * 28
    waiting(correlation=long)
    delivered(f"{long} ", event_id="e" * 300, payload={"text": "x" * 5000, "nested": [{}, []]})
    event = delivered("PO10077", type=TYPE, event_id=MARKUP, payload={MARKUP: MARKUP}).event
    delivered(MARKUP, type=MARKUP, problem=MARKUP)
    urls = ["/events/", "/events/?view=all", f"/events/{event}/", f"/events/{event}/attach/"]
    urls += [f"/runs/{run.pk}/"]
    for url in urls:
        page.goto(url)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            for width in (1440, 390, 320):
                page.set_viewport_size({"width": width, "height": 844})
                expect(page.get_by_role("heading", level=1)).to_be_visible()
                surplus = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                assert surplus <= 0, (url, scheme, width)
        assert "owned" not in page.title()


def test_a_long_correlation_leaves_room_for_what_stands_beside_it(page: Page) -> None:
    run = waiting(correlation="0123456789" * 30)
    page.goto("/events/")
    link = page.locator(".waits").get_by_role("link").first.bounding_box()
    assert link is not None
    assert link["height"] < 60, "the run's name stands letter below letter"
    page.goto(f"/runs/{run.pk}/")
    log = page.locator("#log-scroll")
    assert log.evaluate("each => each.scrollWidth - each.clientWidth") <= 0
