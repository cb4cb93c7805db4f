"""A26: text of others is text on every page of the console, and nothing of it is markup.

An administrator walks through every page that can be reached from the first one. What each holds is
read as a browser reads it.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.urls import resolve

from tests.console.hostile import said_everywhere
from tests.console.walking import walked
from tests.destination import RunningDestination

pytestmark = pytest.mark.django_db

# Pages on which something of it has to be seen, so that the walk has been where it matters.
SHOWN_ON = {
    *("review", "review_preview", "review_notes", "review_bulk_action"),
    *("operation", "runs", "run", "held_run", "events", "event"),
    *("providers", "provider", "workers", "audit", "dispatch", "notifications"),
}


def test_a26_text_of_others_is_text_wherever_it_is_shown(
    destination: RunningDestination, admin_client: Client
) -> None:
    said_everywhere(destination)
    read = walked(admin_client, of_each_kind=2)
    assert {path: page.wrong for path, page in read.items() if page.wrong} == {}
    shown = {
        resolve(urlsplit(path).path).url_name
        for path, page in read.items()
        if any("onerror" in text for text in page.text)
    }
    assert shown >= SHOWN_ON, f"it was not seen on {sorted(SHOWN_ON - shown)}"
