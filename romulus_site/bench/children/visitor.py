"""Visits the pages of the console as one person does, and times what the server does for each.

The requests go through the whole of Django, and no web server: a page's time is what our code and
the database take.
"""

from __future__ import annotations

import gc
import gzip
import re
import time
from collections.abc import Callable
from html import unescape
from typing import Any
from unittest.mock import patch

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from guardian.shortcuts import assign_perm

from reconciliation.core.states import HoldState
from reconciliation.models import ContractVersion, Hold, Provider, ReviewQueue
from reconciliation.rehearsal.providers import ACTIONS
from reconciliation.services.setup import make_owner
from romulus_site.bench.talk import hear, say
from workflows.models import Tenant
from workflows.sql.statement import Statement

READER = "reader"
OWNERS = 4
TENANTS = 5
OK, NOTHING_NEW, REDIRECTS = 200, 204, (301, 302, 303)
# What a page says of its own polling: where to ask, and which part of it asks.
POLL = re.compile(r'id="([^"]+)"[^<>]*hx-get="([^"]+)"[^<>]*hx-trigger="every')


def main() -> None:
    say({})
    client, addresses = Client(headers={"host": "localhost"}), {}
    while (order := hear()) is not None:
        if order["what"] == "set up":
            say(set_up(order["people"], order["queues"]))
        elif order["what"] == "open":
            client.force_login(User.objects.get(username=READER))
            addresses = addresses_of()
            gc.collect()
            gc.freeze()  # as the console does when it has started (`romulus_site.wsgi`)
            say({"pages": list(addresses)})
        else:
            # As the pages ask now: what they have seen is over after a while, whatever changes.
            asked = addresses | polls_of(client, addresses)
            say({"visits": {name: visit(client, *asked[name]) for name in asked}})


@transaction.atomic
def set_up(people: int, queues: int) -> dict[str, Any]:
    """Make people, each of whom owns a queue, and a reader who may see all of it, by right."""
    contract = ContractVersion.objects.filter(slug="rehearsal-keyed").latest("version")
    tenants = [Tenant.objects.create(slug=f"t-{n}", name=f"Tenant {n}") for n in range(TENANTS)]
    users = [User.objects.create(username=f"person-{n}") for n in range(people - 1)]
    reader = User.objects.create(username=READER)
    places = [place_of(n, contract) for n in range(queues)]
    for n, (queue, _) in enumerate(places):
        for owner in {users[(n * OWNERS + k) % len(users)] for k in range(OWNERS)} | {reader}:
            make_owner(owner, queue)
    for tenant in tenants:
        for right in ("view_tenant", "view_payloads", "control_runs"):
            assign_perm(f"workflows.{right}", reader, tenant)
    return {
        "tenants": [str(tenant.pk) for tenant in tenants],
        "queues": [str(queue.pk) for queue, _ in places],
        "providers": [str(provider.pk) for _, provider in places],
        "contract": str(contract.pk),
        "reader": reader.pk,
    }


def place_of(number: int, contract: ContractVersion) -> tuple[ReviewQueue, Provider]:
    queue = ReviewQueue.objects.create(slug=f"q-{number}", name=f"Queue {number}")
    provider = Provider.objects.create(
        slug=f"p-{number}",
        name=f"Provider {number}",
        adapter="rehearsal",
        account="acct_bench",
        base_url="http://127.0.0.1:9",
        contract_version=contract,
        settings={"actions": ACTIONS["keyed"]},
        visible_parameters=["order", "amount"],
        replay_trust="accepted for the bench",
        default_queue=queue,
    )
    return queue, provider


# --- the pages ----------------------------------------------------------------------------------

Address = tuple[str, str]
"""A path, and the part of the page that asks for it (empty: the whole page)."""


def addresses_of() -> dict[str, Address]:
    hold = Hold.objects.filter(state=HoldState.OPEN).select_related("operation").latest("pk")
    whole = {
        "overview": reverse("start"),
        "search": f"{reverse('search')}?q={str(hold.run_id)[-8:]}",
        "review queue": reverse("review"),
        "review queue, mine": f"{reverse('review')}?tab=mine",
        "approvals": reverse("approvals"),
        "operation": reverse("operation", args=[hold.operation_id]),
        "run": reverse("run", args=[hold.run_id]),
        "runs": reverse("runs"),
        "runs, held": reverse("runs") + "?state=held",
        "runs, completed": reverse("runs") + "?state=completed",
        "events and waits": reverse("events"),
        "providers": reverse("providers"),
        "provider": reverse("provider", args=["p-1"]),
        "dispatch": reverse("dispatch"),
        "workers": reverse("workers"),
        "audit": reverse("audit"),
        "notifications": reverse("notifications"),
    }
    return {name: (path, "") for name, path in whole.items()}


def polls_of(client: Client, addresses: dict[str, Address]) -> dict[str, Address]:
    """What each page asks for by itself, as it stands there."""
    found: dict[str, Address] = {}
    for name, (path, _) in addresses.items():
        for target, where in POLL.findall(client.get(path).content.decode()):
            title = "poll: needs you" if target == "needs-you" else f"poll: {name}, {target}"
            found[title] = (unescape(where), target)
    return found


def visit(client: Client, path: str, target: str) -> dict[str, Any]:
    headers = {"HX-Request": "true", "HX-Target": target} if target else {}
    cpu, began = time.process_time(), time.perf_counter()
    answer = client.get(path, headers=headers)
    seconds, worked = time.perf_counter() - began, time.process_time() - cpu
    asked = queries(lambda: client.get(path, headers=headers))
    return {
        "ms": seconds * 1000,
        "cpu_ms": worked * 1000,
        "queries": asked,
        "status": answer.status_code,
        "kb": len(gzip.compress(answer.content)) / 1000,
    }


def queries(act: Callable[[], object]) -> int:
    """How many statements `act` sends: Django's, and those that pass it by."""
    fetch = Statement.fetch
    with (
        CaptureQueriesContext(connection) as captured,
        patch.object(Statement, "fetch", autospec=True, side_effect=fetch) as hot,
    ):
        act()
    return len(captured) + hot.call_count
