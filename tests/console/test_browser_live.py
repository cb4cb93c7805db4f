"""Live updates in a real browser: what a swap leaves alone, and when polling rests."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.db.models.functions import Now
from playwright.sync_api import Browser, Page, Request, Route, expect

from reconciliation.models import Hold, Profile, Provider
from reconciliation.services.assigning import claim
from tests.console.test_browser import browser, problem_of  # noqa: F401  # the fixture is used
from tests.factories import many_held, many_runs, person, ready_provider
from tests.waiting import LIMIT_SECONDS, wait_for
from workflows.models import Run

pytestmark = pytest.mark.browser

ROUND = 16_000  # milliseconds: a little more than the overview waits between two polls
LEAD = "#overview .verdict b"


@pytest.fixture
def provider(live_console: str) -> Provider:
    return ready_provider("payments")


@pytest.fixture
def page(browser: Browser, provider: Provider, live_console: str) -> Iterator[Page]:  # noqa: F811
    """The overview of `reviewer_1` on a clock that only the test moves on."""
    context = browser.new_context(base_url=live_console)
    context.set_default_timeout(1000 * LIMIT_SECONDS)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    # Of an answer that does not come, htmx itself complains.
    page.on("console", lambda said: problems.extend(problem_of(said)))
    page.goto("/login/?next=/")
    page.get_by_label("Username").fill(person().username)
    page.get_by_label("Password").fill("reviewer_1")
    page.clock.install()
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{live_console}/")
    expect(page.locator(LEAD)).to_contain_text("nothing waits")
    yield page
    context.close()
    assert [said for said in problems if not said.startswith("htmx:")] == []


def polls_of(page: Page) -> list[str]:
    """What scripts ask from now on; it grows while they do."""
    asked: list[str] = []

    def note(request: Request) -> None:
        if request.resource_type in ("xhr", "fetch"):
            asked.append(request.url)

    page.on("request", note)
    return asked


def test_what_is_new_appears_by_itself(page: Page, provider: Provider) -> None:
    many_held(2, provider)
    page.clock.run_for(ROUND)
    expect(page.locator(LEAD)).to_have_text("2 cases wait for a person.")


def test_a_region_that_somebody_is_in_is_not_drawn_anew(page: Page, provider: Provider) -> None:
    many_held(2, provider)
    page.locator("#to-review").focus()
    page.clock.run_for(3 * ROUND)
    expect(page.locator("#to-review")).to_be_focused()
    expect(page.locator(LEAD)).to_contain_text("nothing waits")
    page.locator("#live-toggle").focus()
    page.clock.run_for(ROUND)
    expect(page.locator(LEAD)).to_have_text("2 cases wait for a person.")
    expect(page.locator("#live-toggle")).to_be_focused()


def test_nor_when_they_came_while_the_answer_was_on_its_way(page: Page, provider: Provider) -> None:
    many_held(2, provider)

    def late(route: Route) -> None:
        page.locator("#to-review").focus()
        route.continue_()

    page.route("**/?seen=*", late, times=1)
    with page.expect_response("**/?seen=*"):
        page.clock.run_for(ROUND)
    expect(page.locator("#to-review")).to_be_focused()
    expect(page.locator(LEAD)).to_contain_text("nothing waits")


def test_a_tab_that_nobody_sees_does_not_ask(page: Page, provider: Provider) -> None:
    asked = polls_of(page)
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    page.clock.run_for(4 * ROUND)
    assert asked == []
    page.evaluate("Object.defineProperty(document, 'hidden', {value: false})")
    with page.expect_request("**/?seen=*"):
        page.clock.run_for(ROUND)


def test_two_missed_rounds_are_said_and_the_next_answer_ends_it(page: Page) -> None:
    polls = re.compile(r"/(needs-you/)?\?(seen|shown)=")
    page.route(polls, lambda route: route.abort())
    stopped = page.get_by_text("Live updates stopped.")
    page.clock.run_for(ROUND)
    expect(stopped).not_to_be_visible()
    # The pause after a miss is longer than a round.
    page.clock.run_for(2 * ROUND)
    expect(stopped).to_be_visible()
    page.unroute(polls)
    page.clock.run_for(10 * ROUND)
    expect(stopped).not_to_be_visible()


def test_what_is_long_on_its_way_is_shown_as_its_outline(page: Page, provider: Provider) -> None:
    many_held(2, provider)
    page.goto("/review/")
    kept: list[Route] = []

    def keep(route: Route) -> None:
        kept.append(route)

    page.route("**/preview/**", keep)
    previews = page.locator(".pv:not([hidden])")
    outline = page.locator(".bones")
    page.locator("[data-preview]").first.click()
    expect(outline).to_have_count(0)
    page.clock.run_for(500)
    expect(outline).to_be_visible()
    kept[0].continue_()
    expect(previews).to_contain_text("What was intended")
    expect(outline).to_have_count(0)
    # Where no answer comes, nothing is left of it.
    page.locator("[data-preview]").nth(1).click()
    page.clock.run_for(500)
    expect(outline).to_be_visible()
    kept[1].abort()
    expect(outline).to_have_count(0)
    expect(previews).to_have_count(1)
    expect(page.get_by_text("No answer came.")).to_be_visible()


def test_the_switch_is_kept_for_the_person_and_heard_in_every_tab(
    page: Page, provider: Provider
) -> None:
    other = page.context.new_page()
    other.goto("/runs/")
    expect(other.locator(".live")).to_have_text("Live")
    page.get_by_role("button", name="Pause updates").click()
    expect(page.locator(".live")).to_have_text("Paused")
    expect(other.locator(".live")).to_have_text("Paused")
    wait_for(lambda: Profile.objects.filter(live=False).exists(), "it is kept")
    many_held(1, provider)
    page.reload()
    Hold.objects.all().update(version=2)
    asked = polls_of(page)
    page.clock.run_for(4 * ROUND)
    assert asked == []
    page.get_by_role("button", name="Resume updates").click()
    expect(other.locator(".live")).to_have_text("Live")


def test_slash_leads_to_the_search_box_and_enter_to_the_whole_id(
    page: Page, provider: Provider
) -> None:
    (hold,) = many_held(1, provider)
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type(str(hold.run_id))
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/runs/{hold.run_id}/")
    Profile.objects.update_or_create(user=person(), defaults={"letters": False})
    page.reload()
    page.keyboard.press("/")
    expect(page.locator("#search")).not_to_be_focused()


def test_counts_follow_and_what_somebody_types_stays(page: Page, provider: Provider) -> None:
    page.goto("/review/")
    head, search = page.locator("#queue-head"), page.get_by_role("searchbox")
    expect(head).not_to_be_visible()
    search.fill("ORD-70")
    (hold,) = many_held(1, provider)
    claim(hold.pk, person())
    page.clock.run_for(2 * ROUND)
    expect(head).to_contain_text("1 case waits for a person.")
    expect(page.locator("#needs-you")).to_have_text("1 held")
    expect(page.locator("#count-mine")).to_have_text("1")
    expect(page.locator("#way-tab_mine-count")).to_have_text("1")
    expect(search).to_be_focused()
    expect(search).to_have_value("ORD-70")


def test_a_list_on_which_work_goes_on_keeps_the_rows_that_did_not_change(page: Page) -> None:
    stays, changes = many_runs(2, "ready")
    page.goto("/runs/")
    rows = page.locator("tr[data-row]")
    expect(rows).to_have_count(2)
    page.evaluate("for (const row of document.querySelectorAll('tr[data-row]')) row.kept = true")
    Run.objects.filter(pk=changes.pk).update(state="completed", finished_at=Now())
    (new,) = many_runs(1, "ready")
    page.clock.run_for(ROUND)
    expect(rows).to_have_count(3)
    shown = rows.evaluate_all("rows => rows.map((row) => [row.id, row.kept ?? false])")
    assert shown == [
        [f"row-{new.pk.hex[-12:]}", False],
        [f"row-{changes.pk.hex[-12:]}", False],
        [f"row-{stays.pk.hex[-12:]}", True],
    ]
    expect(rows.nth(1)).to_contain_text("Completed")
    # The poll that came with the answer goes on.
    many_runs(1, "ready")
    page.clock.run_for(ROUND)
    expect(rows).to_have_count(4)


def test_a_choice_made_while_a_poll_is_on_its_way_stands(page: Page) -> None:
    many_runs(1, "ready")
    many_runs(1, "held")
    page.goto("/runs/")
    kept: list[Route] = []

    def keep(route: Route) -> None:
        kept.append(route)

    page.route("**/runs/?seen=*", keep)
    with page.expect_request("**/runs/?seen=*"):
        page.clock.run_for(ROUND)
    # The poll is ended: what it would bring is of the list that was left.
    with page.expect_event("requestfailed"):
        page.get_by_role("link", name="Held 1").click()
    expect(page.locator("tr[data-row]")).to_have_count(1)
    assert len(kept) == 1
