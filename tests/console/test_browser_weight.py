"""A first visit: what it loads, from where, and that nothing moves while it comes.

`ROMULUS_SCREENSHOTS` names a folder that keeps how long the operation page takes to be readable on
a slow phone (phone.json); a test that asserted on it would assert on the machine.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.management import call_command
from django.test import Client
from playwright.sync_api import Browser, Page
from pytest_django import Settings

from reconciliation.models import Operation
from tests.conftest import console_server
from tests.console.posting import url_of
from tests.console.test_browser import browser  # noqa: F401 (the fixture)
from tests.destination import RunningDestination
from tests.factories import held_operation, many_held, person, ready_provider

pytestmark = pytest.mark.browser

MOST_BYTES = 150_000
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
MOVES = """
  window.moves = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      window.moves.push([entry.value, entry.sources.map((each) => each.node?.className)]);
    }
  }).observe({ type: "layout-shift", buffered: true });
"""

# A phone on a slow mobile network, as Lighthouse has it: each way and back takes 150 ms, 1.6 Mbit a
# second come in, 750 kbit go out; its processor is four times slower than this machine's.
SLOW_NETWORK = {
    "offline": False,
    "latency": 150,
    "downloadThroughput": 1_638_400 / 8,
    "uploadThroughput": 750_000 / 8,
}
SLOWER = 4
VISITS = 5
READABLE = """() => ({
  readable_ms: performance.getEntriesByName("first-contentful-paint")[0].startTime,
  answered_ms: performance.getEntriesByType("navigation")[0].responseStart,
  waited_for: performance.getEntriesByType("resource")
    .filter((each) => each.renderBlockingStatus === "blocking").map((each) => each.name),
  moves: window.moves,
})"""


@pytest.fixture
def gathered(settings: Settings, tmp_path: Path, committed_db: str) -> Iterator[str]:
    """The console with its files compressed, as `up` serves it; gives its address."""
    settings.STATIC_ROOT = str(tmp_path)
    settings.WHITENOISE_USE_FINDERS = settings.WHITENOISE_AUTOREFRESH = False
    settings.STORAGES = settings.STORAGES | {
        "staticfiles": {"BACKEND": "romulus_site.static_files.Gathered"}
    }
    call_command("collectstatic", interactive=False, verbosity=0)
    with console_server(lambda application: application) as url:
        yield url


@pytest.fixture
def held(gathered: str, destination: RunningDestination) -> Operation:
    provider = ready_provider("desk", destination.url)
    held = held_operation(destination)
    many_held(60, provider)
    return held


@dataclass
class Loaded:
    """What a browser got for one address."""

    sizes: list[int] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def watch(self, page: Page) -> None:
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.on(
            "Network.loadingFinished", lambda done: self.sizes.append(done["encodedDataLength"])
        )
        page.on("request", lambda asked: self.hosts.add(urlsplit(asked.url).netloc))


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_a_first_visit_is_small_comes_from_here_and_nothing_moves(
    browser: Browser,  # noqa: F811
    gathered: str,
    held: Operation,
    size: dict[str, int],
) -> None:
    client = Client()
    client.force_login(person())
    session = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": gathered}
    for path in ("/", "/review/", url_of(held), f"/runs/{held.run_id}/", "/events/"):
        context = browser.new_context(base_url=gathered, viewport=size)  # type: ignore[arg-type]
        context.add_cookies([session])  # type: ignore[list-item]
        page, loaded = context.new_page(), Loaded()
        page.add_init_script(MOVES)
        loaded.watch(page)
        page.goto(path, wait_until="networkidle")
        assert sum(loaded.sizes) < MOST_BYTES, path
        assert loaded.hosts == {urlsplit(gathered).netloc}, path
        assert page.evaluate("window.moves") == [], path
        context.close()


def test_a_phone_waits_for_two_sheets_and_nothing_moves(
    browser: Browser,  # noqa: F811
    gathered: str,
    held: Operation,
) -> None:
    client = Client()
    client.force_login(person())
    # The console reads its templates when it starts, not at somebody's first visit.
    assert client.get(url_of(held)).status_code == 200
    session = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": gathered}
    visits = [seen_on_a_phone(browser, gathered, session, url_of(held)) for _ in range(VISITS)]
    for seen in visits:
        sheets = [urlsplit(each).path.split("/")[-1].split(".")[0] for each in seen["waited_for"]]
        assert sorted(sheets) == ["case", "console"]
        assert seen["moves"] == []
    if folder := os.environ.get("ROMULUS_SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        kept = {"readable_ms": median(seen["readable_ms"] for seen in visits), "visits": visits}
        (Path(folder) / "phone.json").write_text(json.dumps(kept, indent=2))


def seen_on_a_phone(
    browser: Browser,  # noqa: F811
    address: str,
    session: dict[str, str],
    path: str,
) -> dict[str, Any]:
    """A visit with nothing kept from an earlier one."""
    context = browser.new_context(base_url=address, viewport=PHONE, is_mobile=True)  # type: ignore[arg-type]
    context.add_cookies([session])  # type: ignore[list-item]
    page = context.new_page()
    page.add_init_script(MOVES)
    slow_down(page)
    page.goto(path, wait_until="load")
    seen: dict[str, Any] = page.evaluate(READABLE)
    context.close()
    return seen


def slow_down(page: Page) -> None:
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", SLOW_NETWORK)
    session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})


def test_files_are_kept_for_ever_under_names_of_their_own(gathered: str) -> None:
    client = Client()
    page = client.get("/login/").content.decode()
    sheet = page.partition('rel="stylesheet" href="')[2].partition('"')[0]
    answer = client.get(sheet, headers={"accept-encoding": "gzip"})
    assert answer.headers["Content-Encoding"] == "gzip"
    assert "immutable" in answer.headers["Cache-Control"]
    # Read to its end, so that the file is closed.
    assert b"@layer" in gzip.decompress(b"".join(answer))
