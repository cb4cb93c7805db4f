"""A26: text of others is text on every page of the console, and nothing of it is markup.

An administrator walks through every page that can be reached from the first one. What each holds is
read as a browser reads it.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import timedelta
from html.parser import HTMLParser
from urllib.parse import urldefrag, urlsplit

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import Client
from django.urls import Resolver404, resolve

from reconciliation.models import DispatchStop, Operation, Provider, ReviewQueue
from tests.claiming import ready_run
from tests.deciding import KEEP_HOLDING, decide
from tests.destination import RunningDestination
from tests.events import FAILING, delivered, waiting
from tests.factories import (
    advanced,
    open_hold_of,
    ready_provider,
    settled,
    started_run,
    tenant,
)
from tests.scripted import scripted_provider
from workflows.core.definitions import Workflow
from workflows.core.intents import Intent
from workflows.models import Pause, Tenant, Worker
from workflows.registry import registry
from workflows.services.run_view import RunView
from workflows.services.runs import start

pytestmark = pytest.mark.django_db

# Ends an attribute and an element, and would run under no content policy; "&lt;" is for a page that
# takes an escape away.
MARK = '"></a></script><img src=x onerror="document.title=1">&lt;img src=x onerror=1>'
marked = Workflow("tests.marked")


@marked.write(provider="desk")
def tell_the_desk(run: RunView) -> Intent:
    return Intent(
        action="comments.create",
        target=MARK,
        parameters={"ticket": "T-17", "body": MARK},
        summary=MARK,
    )


SCHEMES = {"", "http", "https", "mailto"}
LINKS = {"href", "src", "action", "hx-get", "hx-post", "formaction"}
OF_EACH_KIND, AT_MOST = 2, 400
# Pages on which something of it has to be seen, so that the walk has been where it matters.
SHOWN_ON = {
    *("review", "operation", "runs", "run", "held_run", "events", "event"),
    *("providers", "provider", "workers", "audit", "dispatch"),
}


@dataclass
class Reading(HTMLParser):
    """A page as a browser has it: where it leads, its text, and what is wrong with it."""

    links: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name.startswith("on") or (tag == "img" and value == "x"):
                self.wrong.append(f"<{tag} {name}={value!r}>")
            if name in LINKS and value:
                if urlsplit(value).scheme not in SCHEMES and not value.startswith("data:image/"):
                    self.wrong.append(f"<{tag}> leads to {value!r}")
                if name in ("href", "hx-get"):
                    self.links.append(value)
            self.text.append(value or "")

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture
def everywhere(destination: RunningDestination) -> None:
    """The mark in all that others say: providers, events, workers, people, and what runs give."""
    registry.add(marked)
    ready_provider("desk", destination.url)
    destination.client.arm("apply_then_drop")
    settled(start(marked.name, {"note": MARK}, tenant=tenant(), labels={"file": MARK}))
    decide(open_hold_of(Operation.objects.get()), KEEP_HOLDING, note=MARK * 2)
    with scripted_provider() as refusing:
        refusing.status = 400
        refusing.body = json.dumps({"error": {"type": MARK, "message": MARK}}).encode()
        ready_provider("payments", refusing.url)
        advanced(started_run("refund"))
    Provider.objects.filter(slug="payments").update(contract_version=None)
    advanced(started_run("refund"))

    def fail(_: object) -> None:
        raise ValueError(MARK)

    advanced(ready_run(function=fail))
    advanced(ready_run(function=lambda _: {"file": MARK, MARK: 1}))
    waiting(FAILING, MARK)
    delivered(f"{MARK} ", event_id=MARK, type=MARK, payload={MARK: MARK})
    delivered(f"{MARK} ", event_id=f"{MARK}2", payload={MARK: MARK})
    for each in (Provider, ReviewQueue, Tenant):
        each.objects.update(name=MARK)
    User.objects.update(first_name=MARK)
    Worker.objects.update(host=MARK)
    Worker.objects.create(host=MARK, pid=7, workflows=[[MARK, 1]])
    Pause.objects.create(workflow=MARK, by=f"user:1 {MARK}", reason=MARK)
    until = Now() + timedelta(hours=1)
    DispatchStop.objects.create(state="paused", by=MARK, reason=MARK, action="x", until=until)


def test_a26_text_of_others_is_text_wherever_it_is_shown(
    everywhere: None, admin_client: Client
) -> None:
    read, shown = walked(admin_client)
    assert {name: page.wrong for name, page in read.items() if page.wrong} == {}
    assert shown >= SHOWN_ON, f"the mark was not seen on {sorted(SHOWN_ON - shown)}"


def walked(client: Client) -> tuple[dict[str, Reading], set[str]]:
    """Read every page that can be reached, some of each kind; and the kinds that show the mark."""
    to_read, known = deque(["/", "/admin/"]), {"/", "/admin/"}
    kinds: Counter[str] = Counter()
    read: dict[str, Reading] = {}
    shown: set[str] = set()
    while to_read and len(read) < AT_MOST:
        path = to_read.popleft()
        kind = kind_of(path)
        if not kind or kinds[kind] >= OF_EACH_KIND:
            continue
        kinds[kind] += 1
        answer = client.get(path, follow=True)
        assert answer.status_code < 500, f"{path}: {answer.status_code}"
        if "html" not in answer.headers.get("Content-Type", ""):
            continue
        page = read[path] = Reading()
        page.feed(answer.content.decode())
        if any("onerror" in each for each in page.text):
            shown.add(resolve(urlsplit(path).path).url_name or "")
        for link in page.links:
            there = urldefrag(link).url
            there = f"{urlsplit(path).path}{there}" if there.startswith("?") else there
            if there.startswith("/") and there not in known:
                known.add(there)
                to_read.append(there)
    return read, shown


def kind_of(path: str) -> str:
    """Which view it is, asked for what; empty for what is no page to read."""
    parts = urlsplit(path)
    try:
        view = resolve(parts.path).view_name
    except Resolver404:
        return ""
    names = sorted({pair.partition("=")[0] for pair in parts.query.split("&")})
    return "" if view in ("logout", "admin:logout") else f"{view} {names}"
