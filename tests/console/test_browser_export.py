"""Files and paper in a real browser: a case is downloaded and verified, and prints whole."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from reconciliation.exports import verify
from reconciliation.models import Operation
from tests.console.posting import url_of
from tests.console.test_browser import browser, held, page  # noqa: F401 (the fixtures)

pytestmark = pytest.mark.browser


def test_a_case_is_downloaded_and_verified(
    page: Page,  # noqa: F811
    held: Operation,  # noqa: F811
) -> None:
    page.goto(url_of(held))
    page.locator("#head").get_by_text("More", exact=True).click()
    with page.expect_download() as expected:
        page.get_by_role("button", name="Evidence pack").click()
    assert expected.value.suggested_filename == f"operation-{held.pk}.zip"
    assert verify.main([str(expected.value.path())]) == 0


def test_paper_shows_the_case_and_not_the_screen(
    page: Page,  # noqa: F811
    held: Operation,  # noqa: F811
) -> None:
    page.goto(url_of(held))
    sends = page.locator("#sends table")
    expect(sends).to_be_hidden()
    page.emulate_media(media="print")
    for gone in ("nav.side", "form.decide", ".op-head .actions", "#record .actions"):
        expect(page.locator(gone)).to_be_hidden()
    expect(page.locator(".print-only")).to_contain_text(f"{held.pk} · printed")
    # What is folded is opened, and times are absolute.
    expect(sends).to_be_visible()
    expect(page.locator(".rung-id .t .abs").first).to_be_visible()
    expect(page.locator(".rung-id .t .rel").first).to_be_hidden()
