"""The review queue in a real browser: the whole way through it by keyboard, and without scripts."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from guardian.shortcuts import assign_perm
from playwright.sync_api import Browser, Page, expect

from reconciliation.models import BulkAction, CaseNote, Hold, Operation, ReviewQueue
from reconciliation.services.bulk import carry_out
from tests.console.test_browser import browser, held, page  # noqa: F401 (fixtures)
from tests.factories import many_held, owner_of, person, ready_provider

pytestmark = pytest.mark.browser


@pytest.fixture
def others(held: Operation) -> list[Hold]:  # noqa: F811
    """Three more cases behind the held one, and a colleague who may decide all of them."""
    found = many_held(3, ready_provider("payments"))
    Hold.objects.exclude(operation=held).update(reason="conflict")
    for queue in ReviewQueue.objects.all():
        owner_of(queue, "reviewer_2")
        assign_perm("reconciliation.assign", person(), queue)
    return found


def test_a_person_walks_the_queue_by_keyboard_alone(
    page: Page,  # noqa: F811
    others: list[Hold],
    held: Operation,  # noqa: F811
) -> None:
    page.goto("/review/")
    page.keyboard.press("j")
    first = page.locator("[data-row-link]").first
    expect(first).to_be_focused()

    # A preview opens under its row, one at a time, and closes again.
    page.keyboard.press("p")
    preview = page.locator(".pv:not([hidden])")
    expect(preview).to_have_count(1)
    expect(preview).to_contain_text("Refund order 0")
    page.keyboard.press("j")
    page.keyboard.press("p")
    expect(preview).to_have_count(1)
    expect(preview).to_contain_text("Refund order 1")
    page.keyboard.press("p")
    expect(preview).to_have_count(0)

    # A row is assigned in a dialog, which Escape closes without a trace.
    page.keyboard.press("a")
    dialog = page.locator("dialog#act")
    expect(dialog).to_be_visible()
    expect(dialog).to_contain_text("Assign this case")
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()
    page.locator("[data-row-link]").nth(1).focus()
    page.keyboard.press("s")
    expect(dialog).to_be_visible()
    expect(dialog).to_contain_text("Snooze this case")
    dialog.get_by_role("button", name="Snooze it").press("Enter")
    expect(page.get_by_text("Snoozed, back in")).to_be_visible()

    # What is ticked comes before the row: the plan names them, and is confirmed as it is listed.
    page.locator("[data-row-link]").first.focus()
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator("[data-count]")).to_have_text("2 selected")
    page.keyboard.press("a")
    page.wait_for_url("**/review/bulk/?**")
    page.get_by_label("To whom?").select_option(label="reviewer_2")
    page.get_by_role("button", name="Show the plan").press("Enter")
    page.get_by_role("button", name="Assign 2 cases").press("Enter")
    expect(page.get_by_text("0 of 2 looked at")).to_be_visible()
    carry_out(BulkAction.objects.get().pk)
    expect(page.get_by_text("All 2 looked at")).to_be_visible()
    assert Hold.objects.filter(assignee__username="reviewer_2").count() == 2


def test_escape_empties_the_search_and_then_leads_back_to_where_one_was(
    page: Page,  # noqa: F811
    others: list[Hold],
) -> None:
    page.goto("/review/")
    page.keyboard.press("j")
    page.keyboard.press("p")
    row, preview = page.locator("[data-row-link]").first, page.locator(".pv:not([hidden])")
    expect(preview).to_have_count(1)
    page.keyboard.press("/")
    search = page.locator("[data-search]")
    page.keyboard.type("jp")
    expect(search).to_have_value("jp")
    page.keyboard.press("Escape")
    expect(search).to_have_value("")
    expect(search).to_be_focused()
    page.keyboard.press("Escape")
    expect(row).to_be_focused()
    # What was open stays so, until it is what is on top.
    expect(preview).to_have_count(1)
    page.keyboard.press("Escape")
    expect(preview).to_have_count(0)
    # Where one came from nowhere, the letters work again.
    search.click()
    page.keyboard.press("Escape")
    page.locator("body").press("j")
    expect(page.locator("[data-row-link]:focus")).to_have_count(1)


def test_a_filter_narrows_the_list_in_place_and_keeps_the_focus(
    page: Page,  # noqa: F811
    others: list[Hold],
) -> None:
    page.goto("/review/")
    page.locator("#chip-provider").press("Enter")
    desk = page.locator("#options-provider").get_by_role("link", name="Desk")
    # Until htmx has seen to what it just put there, it is a link like any other.
    expect(desk).not_to_have_class(re.compile("htmx-added"))
    desk.press("Enter")
    expect(page.locator("[data-row]")).to_have_count(1)
    expect(page.locator("#chip-provider")).to_contain_text("Desk")
    expect(page.locator("#chip-provider")).to_be_focused()
    page.wait_for_url("**/review/?provider=desk")
    page.locator("#way-tab_mine").press("Enter")
    expect(page.get_by_text("Nothing here")).to_be_visible()
    expect(page.locator("#way-tab_mine")).to_be_focused()
    page.go_back()
    expect(page.locator("[data-row]")).to_have_count(1)
    for width in (1440, 390, 320):
        page.set_viewport_size({"width": width, "height": 844})
        surplus = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert surplus <= 0, width


def test_a_question_is_asked_in_a_dialog_and_stands_on_the_case(
    page: Page,  # noqa: F811
    others: list[Hold],
    held: Operation,  # noqa: F811
) -> None:
    page.goto(f"/operations/{held.pk}/")
    page.get_by_role("link", name="Ask a person…").click()
    dialog = page.locator("dialog#act")
    dialog.get_by_role("button", name="Ask").click()
    expect(dialog.locator("#errors")).to_be_focused()
    dialog.get_by_label("Whom?").select_option(label="reviewer_2")
    dialog.get_by_label("What do you need to know?").fill("Which card?")
    dialog.get_by_role("button", name="Ask").click()
    expect(page.locator("#notes")).to_contain_text("Which card?")
    expect(page.locator("#notes")).to_contain_text("Not answered")
    page.get_by_label("Add a note").fill("I will look at noon.")
    page.get_by_role("button", name="Add the note").click()
    expect(page.locator("#notes")).to_contain_text("I will look at noon.")
    assert CaseNote.objects.count() == 2


def test_without_scripts_a_case_is_found_assigned_and_spoken_of_all_the_same(
    browser: Browser,  # noqa: F811
    page: Page,  # noqa: F811
    others: list[Hold],
    live_console: str,
) -> None:
    context = browser.new_context(
        base_url=live_console,
        java_script_enabled=False,
        storage_state=page.context.storage_state(),
    )
    plain = context.new_page()
    plain.goto("/review/?sort=age")
    plain.locator("#chip-provider").click()
    plain.locator("#filter-provider").get_by_role("link", name="List them").click()
    plain.get_by_role("link", name="Payments").click()
    expect(plain.locator("[data-row]")).to_have_count(3)
    plain.locator("[data-row]").first.get_by_role("button").click()
    plain.get_by_role("link", name="Assign…").click()
    plain.get_by_label("To whom?").select_option(label="reviewer_2")
    plain.get_by_role("button", name="Assign it").click()
    assert Hold.objects.filter(assignee__username="reviewer_2").count() == 1
    plain.goto("/review/?provider=payments")
    plain.locator("[data-select]").first.check()
    plain.get_by_role("button", name="Remind me").click()
    plain.get_by_role("button", name="Show the plan").click()
    plain.get_by_role("button", name="Remind me of 1 case").click()
    expect(plain.get_by_text("0 of 1 looked at")).to_be_visible()
    context.close()


def test_rows_that_lead_nowhere_are_passed_over(
    page: Page,  # noqa: F811
    held: Operation,  # noqa: F811
) -> None:
    User.objects.filter(pk=person().pk).update(is_superuser=True)
    page.goto("/audit/")  # the newest entry is that they signed in
    links = page.locator("[data-row] [data-row-link]")
    expect(page.locator("[data-row]").first.locator("[data-row-link]")).to_have_count(0)
    page.keyboard.press("j")
    expect(links.first).to_be_focused()
