"""What hurried hands do to a decision, in real browsers: two at once, two clicks, going back, and
the whole review by keyboard alone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from reconciliation.models import Decision, Hold, Operation
from reconciliation.selectors.words import DECISIONS
from tests.console.posting import IN_A_MONTH, url_of
from tests.console.test_browser import browser, held, page, signed_in  # noqa: F401 (fixtures)
from tests.deciding import ABANDON, KEEP_HOLDING, decide, learnt
from tests.factories import NOTE, owner_of
from tests.waiting import wait_for

pytestmark = pytest.mark.browser

APART_MS = 60
THEIRS = "The ledger of the desk shows no such comment, so it goes."


def filled(page: Page, held: Operation, option: str, note: str = NOTE) -> Locator:  # noqa: F811
    """The form of the case with everything in it that `option` needs; gives its button."""
    page.goto(url_of(held))
    form = page.locator("form[data-decide]")
    form.locator(f"label[for=kind-{option}]").click()
    if option == "applied":
        form.get_by_label("Which record is the result?").fill("c_1")
    form.get_by_label("Note for the record").fill(note)
    form.get_by_label("Type the last 6 characters").fill(held.pk.hex[-6:])
    button = form.locator("[data-commit]")
    expect(button).to_have_attribute("aria-disabled", "false")
    return button


def test_of_two_reviewers_in_two_browsers_the_second_is_told_and_loses_nothing(
    page: Page,  # noqa: F811
    browser: Browser,  # noqa: F811
    held: Operation,  # noqa: F811
    live_console: str,
) -> None:
    owner_of(Hold.objects.get().queue, "reviewer_2")  # type: ignore[arg-type]
    other = signed_in(browser, live_console, "reviewer_2")
    ours, theirs = filled(page, held, "applied"), filled(other, held, "abandon", THEIRS)
    ours.click(no_wait_after=True)
    theirs.click(no_wait_after=True)
    one, two = (page, NOTE), (other, THEIRS)
    # Either may come first: the clicks are those of two people.
    decided = wait_for(Decision.objects.first, "one of the two has decided")
    (first, in_force), (second, typed) = (one, two) if decided.note == NOTE else (two, one)
    expect(first.locator("#record")).to_contain_text(in_force)
    expect(second.locator("#decide")).to_contain_text(f"{decided.by_name} decided before you")
    # Theirs in force beside what was typed, which is kept, and has no effect.
    expect(second.locator("#decide")).to_contain_text(in_force)
    expect(second.locator("#decide")).to_contain_text(typed)
    expect(second.locator("#decide")).to_contain_text(DECISIONS[decided.kind])
    other.context.close()
    assert Decision.objects.get() == decided


def test_two_clicks_decide_once_and_land_on_the_same_result(
    page: Page,  # noqa: F811
    held: Operation,  # noqa: F811
) -> None:
    button = filled(page, held, "applied")
    button.dblclick(delay=APART_MS / 2)
    expect(page.locator("#record-h")).to_be_focused()
    expect(page.locator("#record")).to_contain_text(NOTE)
    expect(page.locator("#errors")).to_have_count(0)
    assert Decision.objects.count() == 1


@pytest.mark.parametrize("scripts", [True, False])
def test_going_back_and_choosing_otherwise_is_refused_as_decided(
    page: Page,  # noqa: F811
    browser: Browser,  # noqa: F811
    held: Operation,  # noqa: F811
    live_console: str,
    scripts: bool,
) -> None:
    context = browser.new_context(
        base_url=live_console,
        java_script_enabled=scripts,
        storage_state=page.context.storage_state(),
    )
    tab = context.new_page()
    tab.goto("/review/")
    tab.goto(url_of(held))
    tab.locator("#kind-abandon").check()
    tab.get_by_label("Note for the record").fill(NOTE)
    tab.get_by_label("Type the last 6 characters").fill(held.pk.hex[-6:])
    tab.locator("form[data-decide] [data-commit]").click()
    expect(tab.locator("#record")).to_contain_text(NOTE)
    tab.go_back()
    if "/operations/" not in tab.url:  # with scripts the page itself was never left
        tab.go_forward()
    # What the browser shows again is read anew, or is the old form: neither decides otherwise.
    form = tab.locator("form[data-decide]")
    if form.count():
        tab.locator("#kind-keep_holding").check()
        tab.get_by_label("Until when? (UTC)").fill(IN_A_MONTH)
        tab.get_by_label("Note for the record").fill(THEIRS)
        tab.get_by_label("Type the last 6 characters").fill(held.pk.hex[-6:])
        form.locator("[data-commit]").click()
    expect(tab.locator("#record")).to_contain_text(NOTE)
    expect(tab.locator("#record")).not_to_contain_text(THEIRS)
    context.close()
    assert Decision.objects.get().kind == "abandon"


def test_what_became_known_meanwhile_is_read_and_what_was_typed_stays(
    page: Page,  # noqa: F811
    held: Operation,  # noqa: F811
) -> None:
    page.clock.install()
    button = filled(page, held, "abandon")
    learnt(held, "conflict")
    button.click()
    expect(page.locator("#errors")).to_contain_text("What is known has changed since you opened")
    expect(page.get_by_label("Note for the record")).to_have_value(NOTE)
    assert not Decision.objects.exists()
    # Or the page has heard of it by itself, and the form is read anew before it is sent.
    learnt(held, "absence")
    page.clock.fast_forward(60_000)
    page.get_by_role("link", name="Read the form anew").click()
    expect(page.get_by_label("Note for the record")).to_have_value(NOTE)
    expect(page.locator("#kind-abandon")).to_be_checked()
    page.locator("form[data-decide] [data-commit]").click()
    expect(page.locator("#record")).to_contain_text(NOTE)
    assert Decision.objects.get().kind == "abandon"


def test_what_is_offered_beside_the_notes_goes_when_a_colleague_decides(
    page: Page,  # noqa: F811
    held: Operation,  # noqa: F811
) -> None:
    hold = Hold.objects.get()
    other = owner_of(hold.queue, "reviewer_2")  # type: ignore[arg-type]
    page.clock.install()
    page.goto(url_of(held))
    take = page.locator("#notes").get_by_role("button", name="Take it")
    expect(take).to_be_visible()
    note = page.get_by_label("Add a note")
    note.fill("I have called the desk.")
    decide(hold, KEEP_HOLDING, by=other)  # still offered, and drawn anew
    page.clock.fast_forward(60_000)
    expect(page.locator("#record")).to_contain_text("reviewer_2")
    expect(note).to_be_focused()
    take.focus()
    hold.refresh_from_db()
    decide(hold, ABANDON, by=other)
    page.clock.fast_forward(60_000)
    expect(take).to_have_count(0)
    expect(page.locator("#notes-actions")).to_be_hidden()
    # What had the focus is gone: it goes on from the head of its part, and what was typed stays.
    expect(page.locator("#notes-h")).to_be_focused()
    expect(note).to_have_value("I have called the desk.")


def test_from_the_queue_to_the_record_by_keyboard_alone(
    page: Page,  # noqa: F811
    held: Operation,  # noqa: F811
) -> None:
    keys = page.keyboard
    page.goto("/review/")
    keys.press("j")
    keys.press("o")
    page.wait_for_url(f"**{url_of(held)}")
    expect(page.get_by_role("heading", level=1)).to_have_text(held.summary)
    keys.press("d")
    expect(page.locator("#kind-applied")).to_be_focused()
    keys.press("Space")
    reach(page, "#resource")
    keys.type("c_1")
    reach(page, "#note")
    keys.type(NOTE)
    reach(page, "#code")
    keys.type(held.pk.hex[-6:])
    reach(page, "form[data-decide] [data-commit]")
    keys.press("Enter")
    expect(page.locator("#record-h")).to_be_focused()
    assert Decision.objects.get().kind == "applied"


MOST_TABS = 40


def reach(page: Page, selector: str) -> None:  # noqa: F811
    """Press Tab until the focus is there; within a group of choices it is the arrows' to move."""
    for _ in range(MOST_TABS):
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press("Tab")
    pytest.fail(f"the keyboard does not come to {selector}")
