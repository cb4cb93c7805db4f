"""Case A26: text of others is text wherever the console shows it, and nothing of it is markup.

An administrator walks through every page that can be reached from the first one, the admin's too.
What each holds is read as a browser reads it; so are the parts that htmx asks for, what leaves by
mail, and what is exported. That nothing runs in a real browser, whose title would change, is in
`tests/console/test_browser_pages.py`, on the same data.
"""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit
from zipfile import ZipFile

import pytest
from django.core import mail
from django.test import Client
from django.urls import resolve, reverse

from reconciliation.models import Operation
from tests.console.hostile import MARK, said_everywhere
from tests.console.posting import HTMX
from tests.console.walking import Reading, walked
from tests.destination import RunningDestination
from tests.factories import administrator
from tests.telling import told, with_mail

pytestmark = pytest.mark.django_db

# Pages on which something of it has to be seen, so that the walk has been where it matters.
SHOWN_ON = {
    *("review", "review_preview", "review_notes", "review_bulk_action"),
    *("operation", "runs", "run", "held_run", "events", "event"),
    *("approvals", "approval"),
    *("providers", "provider", "workers", "audit", "dispatch", "notifications"),
}
# What htmx asks a page for, by the ID of what it draws anew.
PARTS = {"live", "news", "overview", "progress", "queue", "runs", "timeline", "workers"}


def reading(text: str) -> Reading:
    page = Reading()
    page.feed(text)
    return page


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
    wrong = {}
    one_of_each = {resolve(urlsplit(path).path).view_name: path for path in reversed(list(read))}
    for path in one_of_each.values():
        for part in PARTS & read[path].ids if not path.startswith("/admin/") else ():
            answer = admin_client.get(path, headers=HTMX | {"HX-Target": part})
            if found := reading(answer.content.decode()).wrong:
                wrong[path, part] = found
    assert wrong == {}


def test_a26_what_leaves_by_mail_is_text_too(destination: RunningDestination) -> None:
    with_mail(administrator())
    said_everywhere(destination)
    told()
    bodies = [str(kind.content) for sent in mail.outbox for kind in sent.alternatives]  # type: ignore[attr-defined]
    assert any("onerror" in text for body in bodies for text in reading(body).text)
    assert [found for body in bodies if (found := reading(body).wrong)] == []
    for sent in mail.outbox:
        assert "\n" not in sent.subject


def test_a26_what_is_exported_is_text_too(
    destination: RunningDestination, admin_client: Client
) -> None:
    said_everywhere(destination)
    operation = Operation.objects.filter(target=MARK).latest("created_at")
    one: Any = admin_client.post(reverse("operation_export", args=[operation.pk]))
    assert one.headers["Content-Type"] == "application/json"
    assert "attachment" in one.headers["Content-Disposition"]
    assert json.loads(b"".join(one))["case"]["operation"]["target"] == MARK
    pack: Any = admin_client.post(reverse("operation_evidence", args=[operation.pk]))
    with ZipFile(BytesIO(b"".join(pack))) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith("index.html"))
        page = reading(archive.read(name).decode())
    assert page.wrong == []
    assert any("onerror" in text for text in page.text)
    for name in ("review_export", "runs_export", "audit_export"):
        for form in ("csv", "json"):
            listed: Any = admin_client.post(reverse(name), {"as": form})
            assert "attachment" in listed.headers["Content-Disposition"]
            assert not listed.headers["Content-Type"].startswith("text/html")
            assert listed.headers["X-Content-Type-Options"] == "nosniff"
