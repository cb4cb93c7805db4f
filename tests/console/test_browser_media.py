"""How a case looks to those who need it otherwise: forced colours, more contrast, no motion, paper.

What a state says is never lost: its word, its shape, and the hatching of what is not known.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db.models.functions import Now
from playwright.sync_api import Locator, Page, expect

from reconciliation.models import Hold, Operation
from tests.console.posting import url_of
from tests.console.test_browser import browser, held, page  # noqa: F401 (the fixtures)
from tests.destination import RunningDestination

pytestmark = pytest.mark.browser


def style(of: Locator, name: str) -> str:
    found: Any = of.evaluate("(each, name) => getComputedStyle(each)[name]", name)
    return str(found)


def unknown_in(page: Page) -> Locator:  # noqa: F811
    return page.locator("#head .badge", has_text="Outcome unknown")


def test_forced_colours_keep_hatching_and_place_and_no_theme_fights_them(
    page: Page,  # noqa: F811
    held: Operation,  # noqa: F811
) -> None:
    page.goto(url_of(held))
    page.get_by_role("button", name="Switch light or dark").click()
    for palette in ("light", "dark"):
        page.emulate_media(forced_colors="active", color_scheme=palette, reduced_motion="reduce")
        assert "gradient" in style(unknown_in(page), "backgroundImage")
        assert style(unknown_in(page), "borderTopStyle") == "dashed"
        assert style(page.locator("#sent .leg.gap i").first, "backgroundImage") != "none"
        assert style(page.locator(".nav-item[aria-current]"), "outlineStyle") == "solid"
        assert style(page.locator(".nav-item:not([aria-current])").first, "outlineStyle") == "none"
        # What is drawn in our own colours is drawn in those for the palette's ground.
        words = page.locator("#head .plate").evaluate(
            "(each) => { const made = document.createElement('i'); made.style.color ="
            " 'light-dark(rgb(1, 1, 1), rgb(2, 2, 2))'; made.style.forcedColorAdjust = 'none';"
            " each.append(made); return getComputedStyle(made).color }"
        )
        assert words == {"light": "rgb(1, 1, 1)", "dark": "rgb(2, 2, 2)"}[palette]


def test_more_contrast_leaves_no_pale_words(page: Page, held: Operation) -> None:  # noqa: F811
    page.goto(url_of(held))
    label, value = page.locator(".facts dt").first, page.locator("#intended .say")
    page.emulate_media(contrast="no-preference", reduced_motion="reduce")
    pale = style(label, "color")
    page.emulate_media(contrast="more", reduced_motion="reduce")
    assert style(label, "color") not in (pale, style(value, "color"))
    expect(unknown_in(page)).to_be_visible()


def test_nothing_moves_for_those_who_asked_for_that(
    page: Page,  # noqa: F811
    held: Operation,  # noqa: F811
) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.goto(url_of(held))
    moving = page.evaluate(
        "[...document.querySelectorAll('*')].map((each) => getComputedStyle(each)).filter("
        "(each) => each.transitionDuration !== '0s' || each.animationName !== 'none').length"
    )
    assert moving == 0


def test_what_is_not_known_and_late_is_hatched_in_amber(
    page: Page,  # noqa: F811
    held: Operation,  # noqa: F811
) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.goto(url_of(held))
    in_time = style(unknown_in(page), "borderTopColor")
    Hold.objects.update(due_at=Now() - timedelta(minutes=52))
    page.reload()
    assert style(unknown_in(page), "borderTopColor") != in_time
    assert "gradient" in style(unknown_in(page), "backgroundImage")
    expect(page.locator("#head .facts .tone-hold")).to_contain_text("late")
    page.goto(f"/runs/{held.run_id}/")
    assert "hatch-late" in style(page.locator("svg rect.b-late"), "fill")


def test_paper_has_the_case_and_not_the_screen(
    page: Page,  # noqa: F811
    held: Operation,  # noqa: F811
    destination: RunningDestination,
) -> None:
    page.goto(url_of(held))
    page.emulate_media(media="print", color_scheme="dark", reduced_motion="reduce")
    for left_out in ("nav[aria-label=Main]", ".topbar", "form[data-decide]", "#head .actions"):
        expect(page.locator(left_out)).to_be_hidden()
    # Links are printed with where they lead on this host.
    expect(page.locator(".print-only")).to_contain_text(
        f"Romulus at {urlsplit(page.url).netloc} · {held.pk}"
    )
    expect(page.locator("#request pre")).to_be_visible()  # what is folded on the screen
    expect(page.locator("#head .facts time .rel").first).to_be_hidden()
    expect(page.locator("#head .facts time .abs").first).to_contain_text("UTC")
    assert style(unknown_in(page), "printColorAdjust") == "exact"
    assert "gradient" in style(unknown_in(page), "backgroundImage")
    assert style(page.locator("body"), "backgroundColor") == "rgb(255, 255, 255)"
