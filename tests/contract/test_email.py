"""E-mail, against a real SMTP server that stores and then misbehaves."""

from __future__ import annotations

import email
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.message import Message
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from reconciliation.adapters.base import Connection, Prepared, Transmitted
from reconciliation.adapters.email import EmailAdapter, stuffed
from reconciliation.core.classify import Phase, classify
from reconciliation.core.errors import InvalidProvider
from reconciliation.core.states import TransmissionState
from tests.contract.lanes import CONTRACTS, LOOPBACK, new_operation
from tests.contract.sending import ATTEMPT
from tests.pooler import free_port
from workflows.core.words import HIDDEN

MAIL = {
    "to": "customer@example.com",
    "subject": "Your refund, ä",
    "text": "It is on its way.\n.\n..and more\n",
}
SETTINGS = {"actions": {"notices.send": {"sender": "desk@shop.example"}}, "start_tls": False}
PASSWORD = "Pa55-of-the-desk"


class Mailbox:
    """What the server has stored, and how it answers."""

    def __init__(self) -> None:
        self.stored: list[Envelope] = []
        self.connections = 0
        self.after = "250 queued as 4711"
        self.to = "250 OK"
        self.gone = False

    async def handle_RCPT(  # noqa: N802 (the server's name for it)
        self, _server: Any, _session: Session, envelope: Envelope, address: str, _options: Any
    ) -> str:
        envelope.rcpt_tos.append(address)
        return self.to

    async def handle_DATA(  # noqa: N802
        self, server: SMTP, _session: Session, envelope: Envelope
    ) -> str:
        if not self.after.startswith("5"):
            self.stored.append(envelope)
        if self.gone:
            assert server.transport is not None
            server.transport.abort()
        return self.after


class Server(Controller):
    def factory(self) -> SMTP:
        self.handler.connections += 1

        def known(
            server: Any, session: Any, envelope: Any, mechanism: str, data: Any
        ) -> AuthResult:
            assert isinstance(data, LoginPassword)
            return AuthResult(success=data.password == PASSWORD.encode())

        return SMTP(self.handler, authenticator=known, auth_require_tls=False)


@pytest.fixture
def mailbox() -> Iterator[tuple[Mailbox, str]]:
    box = Mailbox()
    server = Server(box, hostname="127.0.0.1", port=free_port())
    server.start()
    box.connections = 0  # it has tried itself
    yield box, f"smtp://127.0.0.1:{server.port}"
    server.stop()


def adapter(url: str, **changes: Any) -> EmailAdapter:
    fields = {"credential": "", "settings": SETTINGS, "allowed": LOOPBACK} | changes
    return EmailAdapter(Connection(url, "acct_1", "", **fields), CONTRACTS["email"])


def sent(by: EmailAdapter, seconds: float = 10.0) -> Transmitted:
    operation = new_operation()
    prepared = by.prepare("notices.send", MAIL, operation, str(operation))
    stored = Prepared.from_bytes(prepared.to_bytes())
    return by.transmit(stored, "notices.send", operation, ATTEMPT, seconds)


def state(outcome: Transmitted) -> TransmissionState:
    return classify(outcome.report, CONTRACTS["email"]).state


def test_a_message_arrives_once_and_whole(mailbox: tuple[Mailbox, str]) -> None:
    box, url = mailbox
    by = adapter(url)
    assert by.check() == []
    outcome = sent(by)
    assert state(outcome) is TransmissionState.ACKNOWLEDGED
    assert outcome.request_id == "queued as 4711"
    (envelope,) = box.stored
    assert (envelope.mail_from, envelope.rcpt_tos) == ("desk@shop.example", [MAIL["to"]])
    content = envelope.content
    assert isinstance(content, bytes)
    message: Message = email.message_from_bytes(content)
    assert str(message["Message-ID"]).strip("<>") == outcome.record.resource  # type: ignore[union-attr]
    text = message.get_payload(decode=True)
    assert isinstance(text, bytes)
    assert text.decode().replace("\r\n", "\n") == MAIL["text"]
    assert box.connections == 1


@pytest.mark.parametrize(
    ("change", "expected", "stored"),
    [
        ({"to": "550 no such mailbox"}, TransmissionState.REJECTED, 0),
        ({"to": "450 come back later"}, TransmissionState.REJECTED, 0),
        ({"after": "554 this is spam"}, TransmissionState.REJECTED, 0),
        ({"after": "451 try again"}, TransmissionState.UNKNOWN, 1),  # it was stored all the same
        ({"gone": True}, TransmissionState.UNKNOWN, 1),
    ],
)
def test_only_the_servers_answer_says_what_became_of_a_message(
    mailbox: tuple[Mailbox, str], change: dict[str, Any], expected: TransmissionState, stored: int
) -> None:
    box, url = mailbox
    for name, value in change.items():
        setattr(box, name, value)
    outcome = sent(adapter(url))
    assert (state(outcome), len(box.stored), box.connections) == (expected, stored, 1)


def test_a_server_that_is_away_was_sent_nothing() -> None:
    outcome = sent(adapter(f"smtp://127.0.0.1:{free_port()}"))
    assert (outcome.report.phase, state(outcome)) == (Phase.CONNECT, TransmissionState.NOT_SENT)


def test_a_message_whose_end_has_not_left_was_not_sent() -> None:
    """What breaks off before the line that ends it cannot have been delivered."""
    with talking([b"220 hello", b"250 ok", b"250 ok", b"250 ok"]) as (url, heard):
        outcome = sent(adapter(url))
    assert state(outcome) is TransmissionState.NOT_SENT
    assert not any(line == b"." for line in heard)


def test_an_answer_that_never_comes_leaves_it_unknown() -> None:
    with talking([b"220 hello", b"250 ok", b"250 ok", b"250 ok", b"354 go on"]) as (url, heard):
        outcome = sent(adapter(url), seconds=1.0)
    assert (outcome.report.phase, state(outcome)) == (Phase.WAIT, TransmissionState.UNKNOWN)
    assert heard.count(b".") == 1


@contextmanager
def talking(replies: list[bytes]) -> Iterator[tuple[str, list[bytes]]]:
    """A server that says its replies one by one, and after the last one is silent or leaves."""
    listener = socket.create_server(("127.0.0.1", 0))
    heard: list[bytes] = []

    def serve() -> None:
        with suppress(OSError):
            client, _ = listener.accept()
            with client, client.makefile("rb") as lines:
                for reply in replies:
                    client.sendall(reply + b"\r\n")
                    if reply is not replies[-1] or reply.startswith(b"354"):
                        heard.append(lines.readline().strip())
                if replies[-1].startswith(b"354"):
                    heard.extend(line.strip() for line in lines)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"smtp://127.0.0.1:{listener.getsockname()[1]}", heard
    thread.join(timeout=10)
    listener.close()


def test_whoever_signs_in_shows_a_password_that_is_kept_nowhere(
    mailbox: tuple[Mailbox, str],
) -> None:
    box, url = mailbox
    by = adapter(url, credential=f"desk:{PASSWORD}")
    outcome = sent(by)
    assert state(outcome) is TransmissionState.ACKNOWLEDGED
    assert "start_tls" in " ".join(by.check())  # never over a connection that all can read
    box.after = f"250 welcome {PASSWORD}"
    outcome = sent(by)
    assert HIDDEN in outcome.request_id
    assert PASSWORD not in repr(outcome)


def test_a_password_goes_over_no_connection_that_was_not_made_safe(
    mailbox: tuple[Mailbox, str],
) -> None:
    box, url = mailbox
    settings = {**SETTINGS, "start_tls": True}  # and the server has none
    outcome = sent(adapter(url, credential=f"desk:{PASSWORD}", settings=settings))
    assert (state(outcome), box.stored) == (TransmissionState.REJECTED, [])


def test_an_address_that_is_not_allowed_is_not_called(mailbox: tuple[Mailbox, str]) -> None:
    box, url = mailbox
    outcome = sent(adapter(url, allowed=()))
    closed = sent(adapter(f"smtp://127.0.0.1:{free_port()}", allowed=()))
    assert outcome == closed
    assert box.connections == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"to": "a@example.com\r\nRCPT TO:<b@example.com>"},
        {"to": "a@example.com, b@example.com"},
        {"subject": "Hello\r\nBcc: b@example.com"},
        {"to": "no mailbox"},
        {"cc": "b@example.com"},
    ],
)
def test_what_would_be_more_than_one_message_is_refused(changes: dict[str, str]) -> None:
    operation = new_operation()
    by = adapter("smtp://127.0.0.1:9")
    with pytest.raises(InvalidProvider):
        by.prepare("notices.send", MAIL | changes, operation, str(operation))


def test_no_line_of_a_message_can_end_it() -> None:
    assert stuffed(b"a\n.\n..b\r\n.c") == b"a\r\n..\r\n...b\r\n..c\r\n"
