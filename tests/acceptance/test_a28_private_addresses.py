"""Case A28: a provider's address points into the private network.

Refused where it is saved, and again where it is connected to: of a name, the address that it leads
to at that very moment. "Test connection" does not exist: nothing of an answer can be read back but
by a write, whose every outcome is on record.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from reconciliation.core.addresses import REFUSED
from reconciliation.models import AuditEntry, Operation, Provider
from tests.contract.far_side import FarSide, Said, Seen, far_side
from tests.contract.lanes import js
from tests.factories import (
    administrator,
    advanced,
    open_hold_of,
    quick_contract,
    ready_provider,
    settled,
    started_run,
)
from tests.pooler import free_port
from workflows.models import Run

pytestmark = pytest.mark.django_db

PUBLIC = "93.184.215.14"
SAID = f"Another address is needed: {REFUSED}."


@pytest.fixture
def side() -> Iterator[FarSide]:
    with far_side() as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_is_allowed(settings: Settings) -> None:
    settings.ROMULUS_ALLOWED_ADDRESSES = []


def accepts(_seen: Seen) -> Said:
    return js({"id": "c_1", "ticket": "T-17"}, 201, **{"Request-Id": "req_1"})


def desk(url: str) -> Provider:
    """A provider that needs no look-up; it gives up after three sends that could not leave."""
    budget = {"not_sent": 3, "first_pause_seconds": 0.01, "longest_pause_seconds": 0.02}
    contract = quick_contract("blind", budget=budget)
    return ready_provider("desk", url, adapter="http", contract_version=contract)


def saved(provider: Provider, url: str) -> Any:
    """What the admin answers to whoever aims the provider there."""
    client = Client()
    client.force_login(administrator("operator_1"))
    given = {
        "slug": provider.slug,
        "name": provider.name,
        "adapter": provider.adapter,
        "account": provider.account,
        "base_url": url,
        "settings": json.dumps(provider.settings),
        "contract_version": str(provider.contract_version_id),
        "visible_parameters": json.dumps(provider.visible_parameters),
        "look_ups_per_second": str(provider.look_ups_per_second),
        "default_queue": str(provider.default_queue_id),
    }
    shown = {f"initial-{name}": given[name] for name in ("settings", "visible_parameters")}
    page = reverse("admin:reconciliation_provider_change", args=[provider.pk])
    return client.post(page, given | shown)


def said_at_save(provider: Provider, url: str) -> list[str]:
    answer = saved(provider, url)
    assert answer.status_code == HTTPStatus.OK
    return list(answer.context["adminform"].form.errors["base_url"])


def sends(run: Run) -> list[tuple[Any, ...]]:
    rows = Operation.objects.get(run=run).transmissions.order_by("number")
    return list(rows.values_list("state", "phase", "status", "detail_redacted"))


# --- at save ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}",
        "http://localhost:{port}",
        "http://localhost.:{port}",
        "http://[::1]:{port}",
        "http://[::ffff:127.0.0.1]:{port}",
        "http://169.254.169.254",
        "http://192.168.1.1:{port}",
        "http://[fd00::1]:{port}",
    ],
)
def test_a28_an_address_inside_is_refused_at_save_whatever_listens_there(
    side: FarSide, url: str
) -> None:
    provider = desk("https://api.example.com")
    listens, silent = url.format(port=side.port), url.format(port=free_port())
    assert said_at_save(provider, listens) == said_at_save(provider, silent) == [SAID]
    assert side.connections == 0
    provider.refresh_from_db()
    assert provider.base_url == "https://api.example.com"
    assert not AuditEntry.objects.filter(verb="set up").exists()


@pytest.mark.parametrize(
    "url",
    [
        "http://2130706433:{port}",
        "http://0x7f.0.0.1:{port}",
        "http://0177.0.0.1:{port}",
        "http://127.1:{port}",
        "http://api.example.com@127.0.0.1:{port}",
        "http://127.0.0.1:{port}#@api.example.com",
        "file:///etc/passwd",
    ],
)
def test_a28_a_disguise_is_no_address_at_all(side: FarSide, url: str) -> None:
    provider = desk("https://api.example.com")
    assert said_at_save(provider, url.format(port=side.port))
    assert side.connections == 0


# --- at the call ------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "[::ffff:127.0.0.1]", "2130706433", "a@127.0.0.1"])
def test_a28_what_got_past_the_form_is_not_called(side: FarSide, host: str) -> None:
    """Somebody wrote it into the table: the provider is not ready, and the run is held."""
    desk(f"http://{host}:{side.port}")
    run = advanced(started_run("ticket_triage"))
    assert (run.state, run.failure["reason"]) == ("held", "not_ready")
    assert open_hold_of(Operation.objects.get(run=run)).message
    assert (side.connections, sends(run)) == (0, [])


def test_a28_a_name_is_checked_where_it_leads_and_open_and_closed_ports_are_alike(
    side: FarSide,
) -> None:
    provider = desk(f"http://localhost:{side.port}")
    open_port = settled(started_run("ticket_triage"))
    Provider.objects.filter(pk=provider.pk).update(base_url=f"http://localhost:{free_port()}")
    closed = settled(started_run("ticket_triage", number="T-18"))
    assert sends(open_port) == sends(closed)
    assert {state for state, *_ in sends(closed)} == {"not_sent"}
    assert (open_port.state, closed.state) == ("held", "held")
    assert side.connections == 0


def test_a28_the_address_that_was_checked_is_the_one_that_is_called(
    side: FarSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that is answered differently the second time is not asked a second time."""
    provider = desk("https://api.example.com")
    asked: list[str] = []
    system = socket.getaddrinfo

    def changing(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        if host != "rebinding.example.com":
            return system(host, port, *args, **options)
        asked.append(host)
        where = PUBLIC if len(asked) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (where, port))]

    monkeypatch.setattr(socket, "getaddrinfo", changing)
    answer = saved(provider, f"http://rebinding.example.com:{side.port}")
    assert answer.status_code == HTTPStatus.FOUND
    assert len(asked) == 1
    run = settled(started_run("ticket_triage"))
    assert (run.state, side.connections) == ("held", 0)
    assert {state for state, *_ in sends(run)} == {"not_sent"}
    assert len(asked) == 1 + len(sends(run))  # once for each connection, and no more


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a28_a_redirect_is_not_followed_inside(
    side: FarSide, settings: Settings, status: int
) -> None:
    with far_side() as inside:
        settings.ROMULUS_ALLOWED_ADDRESSES = [f"desk=127.0.0.1:{side.port}"]
        side.answers = lambda _seen: Said(status, {"Location": f"{inside.url}/latest/meta-data"})
        desk(side.url)
        run = settled(started_run("ticket_triage"))
        assert (len(side.seen), inside.connections) == (1, 0)
    assert run.state == "held"
    assert {state for state, *_ in sends(run)} == {"unknown"}


# --- the exception ----------------------------------------------------------------------------


def test_a28_a_local_provider_needs_an_entry_of_its_own(side: FarSide, settings: Settings) -> None:
    side.answers = accepts
    provider = desk("https://api.example.com")
    for other in (f"payments=127.0.0.1:{side.port}", "desk=127.0.0.1:1", "desk=10.0.0.0/8"):
        settings.ROMULUS_ALLOWED_ADDRESSES = [other]
        assert said_at_save(provider, side.url) == [SAID]
    settings.ROMULUS_ALLOWED_ADDRESSES = [f"desk=127.0.0.1:{side.port}"]
    assert saved(provider, side.url).status_code == HTTPStatus.FOUND
    assert settled(started_run("ticket_triage")).state == "completed"
    assert len(side.seen) == 1
