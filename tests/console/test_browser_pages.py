"""Every page of the console in a real browser: nothing runs that should not, nothing scrolls
sideways, nothing is out of reach of those who do not see or point.

`ROMULUS_SCREENSHOTS` names a folder that keeps a picture of each, in both widths and themes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.db import connection, connections
from django.test import Client
from django.urls import resolve
from playwright.sync_api import Browser, Page, expect

from tests.conftest import console_server
from tests.console.hostile import said_everywhere
from tests.console.test_browser import browser, problem_of  # noqa: F401 (the fixture)
from tests.console.walking import walked
from tests.databases import cloned
from tests.destination import RunningDestination
from tests.factories import administrator
from tests.waiting import LIMIT_SECONDS

pytestmark = pytest.mark.browser

WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
# At 200 %, what was laid out for 1440 has 720.
WIDTHS = (1920, 720, 390, 320)
# Axe would copy sheets that others import into the page, which the content policy forbids it, for
# the sake of one rule, on pages that turn only one way. No sheet of ours asks how a page is turned.
# Of what is right it names one place for each rule: thousands would be described and thrown away.
AS_IT_IS = {"preload": False, "resultTypes": ["violations"]}
# WCAG 2.2 AA, which the console promises; the rest of axe's rules are advice.
RULES = AS_IT_IS | {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
# In the other theme nothing but colours is another.
COLOURS = AS_IT_IS | {"runOnly": ["color-contrast"]}
LOOK = "options => axe.run(options).then((found) => found.violations)"


@pytest.fixture(scope="module")
def console(
    browser: Browser,  # noqa: F811
    django_db_blocker: Any,
    destination_process: RunningDestination,
) -> Iterator[str]:
    """A console in which others have said the worst, for all tests here; gives its address."""
    destination_process.client.reset()
    with (
        django_db_blocker.unblock(),
        cloned(connection),
        console_server(StaticFilesHandler) as address,
    ):
        said_everywhere(destination_process)
        yield address
        connections.close_all()


@pytest.fixture(scope="module")
def paths(console: str) -> list[str]:
    """One address of each kind of page."""
    client = Client()
    client.force_login(administrator())
    read = walked(client, of_each_kind=1)
    whole = [path for path in read if read[path].is_whole]
    by_view = {resolve(urlsplit(path).path).view_name: path for path in reversed(whole)}
    return sorted(by_view.values())


def of_the_admin(path: str) -> bool:
    return path.startswith("/admin/")


@pytest.fixture
def signed_in(browser: Browser, console: str) -> Iterator[Page]:  # noqa: F811
    """A page of an administrator."""
    client = Client()
    client.force_login(administrator())
    context = browser.new_context(base_url=console, viewport=WIDE)
    session = {"name": "sessionid", "value": client.cookies["sessionid"].value}
    context.add_cookies([session | {"url": console}])
    context.set_default_timeout(1000 * LIMIT_SECONDS)
    # Half a megabyte: sent once, and not again for each look at a page.
    context.add_init_script(Axe().axe_script)
    yield context.new_page()
    context.close()


@pytest.fixture
def page(signed_in: Page) -> Iterator[Page]:
    """What goes wrong in it fails the test."""
    problems: list[str] = []
    signed_in.on("pageerror", lambda error: problems.append(str(error)))
    signed_in.on("console", lambda said: problems.extend(problem_of(said)))
    signed_in.on("dialog", lambda dialog: problems.append(dialog.message))
    yield signed_in
    assert problems == []


def test_every_page_is_within_reach_and_within_its_width(page: Page, paths: list[str]) -> None:
    others = [path for path in paths if not of_the_admin(path)]
    wrong = [problem for path in others for problem in problems_of(page, path)]
    assert not wrong, "\n".join(wrong)


def test_every_page_of_the_admin_is_within_reach(page: Page, paths: list[str]) -> None:
    admin = [path for path in paths if of_the_admin(path)]
    wrong = [problem for path in admin for problem in wrong_in_admin(page, path)]
    assert not wrong, "\n".join(wrong)


def wrong_in_admin(page: Page, path: str) -> Iterator[str]:
    load(page, path)
    yield from out_of_reach(page, path)


def load(page: Page, path: str) -> None:
    page.set_viewport_size(WIDE)
    page.goto(path)
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    assert page.title() != "1"


def out_of_reach(page: Page, path: str) -> Iterator[str]:
    """What is wrong with a loaded page for those who do not see or point, in either theme."""
    for scheme, rules in (("light", RULES), ("dark", COLOURS)):
        # Without motion: colours that are on their way from one theme to the other are neither's.
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        for violation in page.evaluate(LOOK, rules):
            places = [node["target"][0] for node in violation["nodes"][:3]]
            yield f"{path}, {scheme}: {violation['id']}: {violation['help']} at {places}"
        keep(page, path, f"1440-{scheme}")


TWICE = """() => {
  const seen = new Set();
  const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
  return ids.filter((id) => seen.has(id) || !seen.add(id));
}"""


def problems_of(page: Page, path: str) -> Iterator[str]:
    load(page, path)
    # Labels, focus and swaps go by ID.
    yield from (f"{path}: more than one #{each}" for each in page.evaluate(TWICE))
    yield from out_of_reach(page, path)
    for width in WIDTHS:
        page.set_viewport_size(NARROW | {"width": width})
        surplus = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if surplus > 0:
            yield f"{path}: scrolls {surplus} px sideways at {width}"
    page.set_viewport_size(NARROW)
    keep(page, path, "390-dark")
    page.emulate_media(color_scheme="light")
    keep(page, path, "390-light")


def keep(page: Page, path: str, kind: str) -> None:
    if folder := os.environ.get("ROMULUS_SCREENSHOTS"):
        name = re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-")[:60] or "start"
        page.screenshot(path=Path(folder) / f"{name}-{kind}.png", full_page=True)
