"""Names without a place to break, as long as they may be: no page scrolls sideways for them."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page

from reconciliation.models import Hold, Operation, Provider, ReviewQueue
from tests.console.posting import url_of
from tests.console.test_browser import browser, held, page  # noqa: F401 (fixtures)
from tests.factories import many_held, ready_provider
from tests.tampering import tamper
from workflows.models import Worker

pytestmark = pytest.mark.browser

LONG = "W" * 120
# At 200 %, what was laid out for 390 has 195.
WIDTHS = (1440, 390, 320, 195)
SURPLUS = "document.documentElement.scrollWidth - innerWidth"
LEASES = "(region) => region.scrollWidth - region.clientWidth"


@pytest.fixture
def named_long(held: Operation) -> Operation:  # noqa: F811
    """A case of which everything that has a name has a long one, and one that still has a key."""
    (other,) = many_held(1, ready_provider("payments"))
    sent = "first_sent_at = now(), replay_not_after = now() + interval '30 hours'"
    tamper("reconciliation_operation", sent, f"id = '{other.operation_id}'")
    long = f"summary = '{LONG}', target = '{LONG}'"
    tamper("reconciliation_operation", long, f"id = '{held.pk}'")
    tamper("workflows_attempt", f"error = '{LONG}'", f"run_id = '{held.run_id}'")
    for named in (Provider, ReviewQueue):
        named.objects.update(name=LONG)
    User.objects.update(first_name=LONG)
    Hold.objects.update(message=LONG)
    Worker.objects.create(host=LONG, pid=7, workflows=[])
    return held


def test_no_page_scrolls_sideways_for_a_long_name(page: Page, named_long: Operation) -> None:  # noqa: F811
    run = f"/runs/{named_long.run_id}/"
    for path in ("/review/", url_of(named_long), run, "/", "/workers/", "/providers/"):
        page.goto(path)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(SURPLUS) <= 0, f"{path} at {width}"
    page.goto(run)
    page.set_viewport_size({"width": 1440, "height": 900})
    assert page.locator("#leases").evaluate(LEASES) <= 0
