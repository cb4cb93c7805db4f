"""Irreversible: mail through a real SMTP server. After the final dot a lost answer is for a person.

The server stores what it takes, and then goes, or answers too late, or says "try later" all the
same: in none of these may the message be sent again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from aiosmtpd.controller import Controller

from reconciliation.models import ContractVersion, Operation, Provider, ReviewQueue
from reconciliation.rehearsal.flow import known_flow
from tests.factories import open_hold_of, owner_of, settled, tenant
from tests.lanes.counterparts import free_port
from workflows.models import Run
from workflows.services.runs import start

pytestmark = [pytest.mark.django_db, pytest.mark.lanes]

TIMEOUT_SECONDS = 2
MAIL = {"to": "customer@example.com", "subject": "Your refund", "text": "It is on its way."}


class Mailbox:
    """What the server has stored, and what it does with the next messages."""

    def __init__(self) -> None:
        self.stored: list[bytes] = []
        self.acts: list[str] = []

    async def handle_MAIL(  # noqa: N802 (the server's name for it)
        self, server: Any, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        if self.acts[:1] == ["gone_before"]:
            self.acts.pop(0)
            server.transport.abort()
        envelope.mail_from = address
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        act = self.acts.pop(0) if self.acts else ""
        if act != "refused":
            self.stored.append(envelope.content)
        if act == "gone":
            server.transport.abort()
        if act == "late":
            await asyncio.sleep(2 * TIMEOUT_SECONDS)
        answers = {"later": "451 Try again later", "refused": "554 No"}
        return answers.get(act, "250 OK")


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    box = Mailbox()
    server = Controller(box, hostname="127.0.0.1", port=free_port())
    server.start()
    document = {
        **ContractVersion.objects.filter(slug="email").latest("version").document,
        "slug": "lane-email",
        "timeout_seconds": TIMEOUT_SECONDS,
        "budget": {"first_pause_seconds": 0.01, "longest_pause_seconds": 0.02},
    }
    queue = ReviewQueue.objects.create(slug="mail", name="Mail")
    tenant()
    owner_of(queue)
    Provider.objects.create(
        slug="mail",
        name="Mail",
        adapter="email",
        account="desk@example.com",
        base_url=f"smtp://127.0.0.1:{server.port}",
        settings={
            "start_tls": False,
            "actions": {"mail.send": {"sender": "desk@example.com"}},
        },
        contract_version=ContractVersion.objects.create(
            slug="lane-email", version=document["version"], document=document
        ),
        default_queue=queue,
    )
    yield box
    server.stop()


def sent() -> tuple[Run, Operation]:
    flow = known_flow("mail")
    given = {"case": "mail", "unique": "1", "action": "mail.send", "parameters": MAIL}
    run = settled(start(flow.name, given, tenant=tenant()))
    return run, Operation.objects.get(run=run)


def ledger(operation: Operation) -> list[str]:
    return list(operation.transmissions.order_by("number").values_list("state", flat=True))


def test_what_the_server_has_taken_goes_on(mailbox: Mailbox) -> None:
    run, operation = sent()
    assert (run.state, ledger(operation), len(mailbox.stored)) == (
        "completed",
        ["acknowledged"],
        1,
    )


@pytest.mark.parametrize("act", ["gone", "late", "later"])
def test_after_the_final_dot_it_is_held_and_never_sent_again(mailbox: Mailbox, act: str) -> None:
    mailbox.acts = [act]
    run, operation = sent()
    assert (run.state, ledger(operation)) == ("held", ["unknown"])
    assert open_hold_of(operation).reason == "unguarded"
    assert len(mailbox.stored) == 1


def test_before_it_nothing_was_sent_and_it_is_tried_again(mailbox: Mailbox) -> None:
    mailbox.acts = ["gone_before"]
    run, operation = sent()
    assert (run.state, ledger(operation)) == ("completed", ["not_sent", "acknowledged"])
    assert len(mailbox.stored) == 1


def test_a_refusal_after_the_dot_stores_nothing_and_ends_the_step(mailbox: Mailbox) -> None:
    mailbox.acts = ["refused"]
    run, operation = sent()
    assert (ledger(operation), mailbox.stored) == (["rejected"], [])
    assert run.state in ("failed", "held")
