"""Stopping a run in a real browser: what is asked in a dialog, and without scripts on a page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from guardian.shortcuts import assign_perm
from playwright.sync_api import Browser, Page, expect

from tests.console.test_browser import browser, problem_of  # noqa: F401 (the fixture)
from tests.factories import person, started_run, tenant
from tests.flows import batch, driven, looping, parted
from workflows.models import Run
from workflows.services.stopping import pause_all, pause_run

pytestmark = pytest.mark.browser

WHY = "The auditor is here."


@pytest.fixture
def run(live_console: str) -> Run:
    return started_run()


@pytest.fixture
def page(browser: Browser, run: Run, live_console: str) -> Iterator[Page]:  # noqa: F811
    """A page of `operator_1`, who may control runs. What goes wrong in it fails the test."""
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


def test_a_run_is_paused_resumed_and_cancelled_after_its_consequence_was_read(
    page: Page, run: Run
) -> None:
    page.goto(f"/runs/{run.pk}/")
    page.get_by_role("link", name="Pause the run…").click()
    dialog = page.locator("dialog#confirm")
    expect(dialog).to_be_visible()
    expect(dialog).to_contain_text("No worker takes it up at step 1 of 3, load_order")
    # The safe way out has the focus, and leads back to where one was.
    expect(dialog.get_by_text("Let it go on")).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog).not_to_be_visible()
    expect(page.locator("#control-pause")).to_be_focused()

    page.locator("#control-pause").press("Enter")
    dialog.get_by_role("button", name="Pause the run").click()
    expect(dialog.locator("#errors")).to_be_focused()
    expect(dialog.locator("#errors")).to_contain_text("Say why")
    dialog.get_by_label("Why?").fill(WHY)
    dialog.get_by_role("button", name="Pause the run").click()
    expect(page.locator("#head")).to_contain_text("Paused by operator_1")
    expect(page.locator(".why-box")).to_contain_text(WHY)
    run.refresh_from_db()
    assert run.paused_at is not None

    page.get_by_role("link", name="Resume the run…").click()
    dialog.get_by_label("Why?").fill("He is gone.")
    dialog.get_by_role("button", name="Resume the run").click()
    expect(page.locator("#head")).not_to_contain_text("Paused by")

    page.get_by_role("link", name="Cancel the run…").click()
    expect(dialog).to_contain_text("Nothing that was done is undone.")
    dialog.get_by_label("Why?").fill(WHY)
    dialog.get_by_role("button", name="Cancel the run").click()
    expect(page.locator("#head")).to_contain_text("Cancelled")
    expect(page.locator("#control-cancel")).to_have_count(0)
    run.refresh_from_db()
    assert run.state == "cancelled"


def test_who_comes_second_is_told_in_the_dialog(page: Page, run: Run) -> None:
    page.goto(f"/runs/{run.pk}/")
    page.get_by_role("link", name="Pause the run…").click()
    dialog = page.locator("dialog#confirm")
    dialog.get_by_label("Why?").fill(WHY)
    pause_run(run.pk, by="user:99 ada")
    dialog.get_by_role("button", name="Pause the run").click()
    expect(dialog.get_by_role("heading", level=2)).to_have_text("Nothing was changed")
    expect(dialog).to_contain_text("ada paused it first")
    dialog.get_by_role("link", name="Open the run as it is now").click()
    expect(page.locator("#head")).to_contain_text("Paused by ada")


def test_without_scripts_the_same_is_asked_on_a_page(
    browser: Browser,  # noqa: F811
    page: Page,
    run: Run,
    live_console: str,
) -> None:
    context = browser.new_context(
        base_url=live_console,
        java_script_enabled=False,
        storage_state=page.context.storage_state(),
    )
    plain = context.new_page()
    plain.goto(f"/runs/{run.pk}/")
    plain.get_by_role("link", name="Cancel the run…").click()
    plain.wait_for_url(f"**/runs/{run.pk}/cancel/")
    plain.get_by_role("button", name="Cancel the run").click()
    expect(plain.locator("#errors")).to_contain_text("Say why")
    plain.get_by_label("Why?").fill(WHY)
    plain.get_by_role("button", name="Cancel the run").click()
    plain.wait_for_url(f"**/runs/{run.pk}/")
    expect(plain.locator("#head")).to_contain_text("Cancelled")
    context.close()


def test_no_page_of_the_new_kinds_scrolls_sideways(page: Page, run: Run) -> None:
    loops, parts, many = (
        driven(looping, times=30),
        driven(parted),
        driven(batch, does="chfs" * 8),
    )
    pause_run(parts.pk, by="user:99 somebody_with_a_name_that_is_very_long_indeed_and_goes_on")
    pause_all(by="user:99 ada", reason="A reason. " * 40, workflow=many.workflow)
    urls = [f"/runs/{each.pk}/" for each in (loops, parts, many)]
    urls += [f"/runs/{run.pk}/cancel/", f"/runs/?parent={many.pk}", "/runs/?children=with"]
    for url in urls:
        page.goto(url)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            for width in (1440, 390, 320):
                page.set_viewport_size({"width": width, "height": 844})
                expect(page.get_by_role("heading", level=1)).to_be_visible()
                surplus = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                assert surplus <= 0, (url, scheme, width)
