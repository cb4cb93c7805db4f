"""E-mail by SMTP: it cannot be called back, repeated under a key, or looked up.

Until the line that ends the message has left, nothing can have been delivered (RFC 5321): what
breaks off before it was not sent. From then on only the server's own answer says anything; without
it the outcome is unknown for good, since servers were seen to store a message and then to go.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, localtime
from functools import cached_property
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from reconciliation.adapters.answers import Censor
from reconciliation.adapters.base import Adapter, Prepared, Transmitted, Unavailable, Verified
from reconciliation.adapters.network import (
    SAID,
    Broken,
    Channel,
    OutOfTime,
    Progress,
    Unreachable,
    connect,
)
from reconciliation.adapters.uptime import uptime
from reconciliation.core.addresses import parse_address
from reconciliation.core.classify import Answer, Phase, Report
from reconciliation.core.errors import InvalidProvider
from reconciliation.core.matching import Found

# What the contract's answers tell apart: a refusal before the message's end, and one after it.
BEFORE_END, AFTER_END = "before_end", "after_end"
MAILBOX = re.compile(r"[^\s<>@,;:\"\\]+@[A-Za-z0-9.-]+")
LONGEST_LINE = 2048
MOST_LINES = 100
SHOWN = 200
GREETED, DONE, GO_ON, TOO_BAD = 220, 250, 354, 400
PARAMETERS = {"to", "subject", "text"}


def mailbox(text: str) -> str:
    """Check one plain address: what a command line or a header would read as more is refused."""
    if not (text.isascii() and MAILBOX.fullmatch(text)):
        raise ValueError(f"{text!r} is no plain address such as desk@example.com")
    return text


class Declared(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class MessageSettings(Declared):
    """One kind of message. `sender` is its From and its envelope's."""

    sender: Annotated[str, AfterValidator(mailbox)]


class EmailSettings(Declared):
    """`start_tls` is left off only for a server on this machine."""

    actions: dict[str, MessageSettings]
    start_tls: bool = True


@dataclass(frozen=True)
class Reply:
    code: int
    text: str


class Refused(Exception):
    """The server said no before the message's end."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(str(reply.code))
        self.reply = reply


class EmailAdapter(Adapter):
    """Sends one message to one mailbox."""

    schemes: ClassVar = ("smtp", "smtps")

    @cached_property
    def settings(self) -> EmailSettings:
        try:
            return EmailSettings.model_validate(self.connection.settings)
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            path = ".".join(str(part) for part in problem["loc"])
            raise InvalidProvider(f"settings: at {path}: {problem['msg']}") from error

    def check(self) -> list[str]:
        try:
            settings = self.settings
        except InvalidProvider as error:
            return [str(error)]
        problems = []
        if self.contract.replay or self.contract.look_up or self.contract.verifies:
            problems.append("a contract without replay, look-up and result check: e-mail has none")
        if self.connection.credential and ":" not in self.connection.credential:
            problems.append("a credential as USER:PASSWORD")
        plain = self.connection.base_url.startswith("smtp:") and not settings.start_tls
        if plain and self.connection.credential:
            problems.append("start_tls: a password is not sent over a connection that all can read")
        return problems

    def message(self, name: str) -> MessageSettings:
        try:
            return self.settings.actions[name]
        except KeyError:
            known = ", ".join(sorted(self.settings.actions)) or "none"
            raise InvalidProvider(f"no action {name!r} is declared; known: {known}") from None

    # --- the write --------------------------------------------------------------------------

    def prepare(
        self,
        action: str,
        parameters: Mapping[str, Any],
        operation: UUID,
        key: str,  # noqa: ARG002 (no server heeds one)
    ) -> Prepared:
        declared = self.message(action)
        if set(parameters) != PARAMETERS:
            raise InvalidProvider(f"a message has {', '.join(sorted(PARAMETERS))}, and no other")
        try:
            to = mailbox(str(parameters["to"]))
            message = EmailMessage()
            message["From"], message["To"] = declared.sender, to
            message["Subject"] = str(parameters["subject"])
        except ValueError as error:
            raise InvalidProvider(f"this message cannot be written: {error}") from error
        message["Date"] = format_datetime(localtime())
        # It tells whoever looks into a mailbox which operation this is; no server heeds it.
        message["Message-ID"] = f"<{operation}@{declared.sender.partition('@')[2]}>"
        message.set_content(str(parameters["text"]), cte="quoted-printable")
        data = message.as_bytes(policy=SMTP)
        envelope = {"from": declared.sender, "to": to}
        return Prepared("MAIL", "", envelope, data, {"to": to, "subject": parameters["subject"]})

    def transmit(
        self,
        prepared: Prepared,
        action: str,  # noqa: ARG002 (it is all in what was prepared)
        operation: UUID,  # noqa: ARG002
        transmission: UUID,  # noqa: ARG002
        seconds: float,
    ) -> Transmitted:
        progress = Progress(uptime() + seconds, self.contract.deadlines)
        try:
            reply = self.handed_over(prepared, progress)
        except Refused as error:
            return self.answered(error.reply, BEFORE_END)
        except Unreachable as error:
            return Transmitted(Report(progress.phase), detail=str(error))
        except (OutOfTime, Broken):
            said = SAID.get(progress.phase, "no answer after the message's end")
            return Transmitted(Report(progress.phase), detail=said)
        return self.answered(reply, AFTER_END, Found(message_id(prepared)))

    def answered(self, reply: Reply, when: str, record: Found | None = None) -> Transmitted:
        made = record if record is not None and reply.code < TOO_BAD else None
        answer = Answer(
            status=reply.code,
            authentic=True,
            complete=True,
            resource=made.resource if made else None,
            error_type=when,
        )
        said = Censor(self.connection.credential).clean(reply.text, SHOWN)
        ending = "" if when == AFTER_END else " before the message's end"
        return Transmitted(Report(Phase.ANSWER, answer), made, said, f"SMTP {reply.code}{ending}")

    def handed_over(self, prepared: Prepared, progress: Progress) -> Reply:
        """Speak SMTP up to the answer to the message's end.

        Raises:
            Refused, Unreachable, OutOfTime, Broken: where it ended, `progress` tells how far.
        """
        address = parse_address(self.connection.base_url, self.schemes)
        channel = Channel(connect(address, self.connection.allowed, progress), progress)
        talk = Talk(channel)
        try:
            if address.scheme == "smtps":
                talk = Talk(talk.channel.secure(address.host))
            talk.expect(GREETED)
            name = prepared.headers["from"].partition("@")[2]
            talk.say(f"EHLO {name}", DONE)
            if address.scheme == "smtp" and self.settings.start_tls:
                talk.say("STARTTLS", GREETED)
                talk = Talk(talk.channel.secure(address.host))
                talk.say(f"EHLO {name}", DONE)
            self.sign_in(talk)
            talk.say(f"MAIL FROM:<{prepared.headers['from']}>", DONE)
            talk.say(f"RCPT TO:<{prepared.headers['to']}>", DONE)
            talk.say("DATA", GO_ON)
            talk.channel.write(stuffed(prepared.body))

            def ends() -> None:
                progress.phase = Phase.SEND

            talk.channel.write(b".\r\n", ends)
            progress.phase = Phase.WAIT
            reply = talk.reply()
            progress.phase = Phase.ANSWER
            return reply
        finally:
            talk.channel.close()

    def sign_in(self, talk: Talk) -> None:
        if not self.connection.credential:
            return
        user, _, password = self.connection.credential.partition(":")
        shown = base64.b64encode(f"\0{user}\0{password}".encode()).decode()
        talk.say(f"AUTH PLAIN {shown}", 235)

    # --- the questions ----------------------------------------------------------------------

    def look_up(
        self,
        action: str,  # noqa: ARG002
        operation: UUID,  # noqa: ARG002
        seconds: float,  # noqa: ARG002
        prepared: Prepared | None = None,  # noqa: ARG002
    ) -> list[Found] | Unavailable:
        return Unavailable("e-mail cannot be looked up")

    def verify(self, action: str, resource: str, seconds: float) -> Verified | Unavailable:  # noqa: ARG002
        return Unavailable("e-mail cannot be looked up")


class Talk:
    """One conversation: a line, and the reply to it."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._come = b""

    def say(self, line: str, wanted: int) -> None:
        """Raises `Refused` when the reply is another."""
        self.channel.write(f"{line}\r\n".encode("ascii"))
        self.expect(wanted)

    def expect(self, wanted: int) -> None:
        reply = self.reply()
        if reply.code != wanted:
            raise Refused(reply)

    def reply(self) -> Reply:
        """Read one reply, of several lines where its first ones say so.

        Raises:
            Broken: the other side has ended, or speaks another language.
        """
        texts: list[str] = []
        for _ in range(MOST_LINES):
            line = self._line()
            if not re.match(r"[2-5][0-9][0-9](?:[ -]|$)", line):
                raise Broken
            texts.append(line[4:])
            if line[3:4] != "-":
                return Reply(int(line[:3]), " ".join(texts))
        raise Broken

    def _line(self) -> str:
        while b"\n" not in self._come:
            come = self.channel.read(LONGEST_LINE)
            if not come or len(self._come) > LONGEST_LINE:
                raise Broken
            self._come += come
        line, _, self._come = self._come.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r")


def stuffed(data: bytes) -> bytes:
    """The message as it lies on the wire: no line of it can be taken for its end."""
    whole = re.sub(rb"\r?\n", b"\r\n", data)
    if not whole.endswith(b"\r\n"):
        whole += b"\r\n"
    return re.sub(rb"(?m)^\.", b"..", whole)


def message_id(prepared: Prepared) -> str:
    """The message's own ID, which carries the operation's."""
    found = re.search(rb"(?im)^Message-ID:\s*<([^>]+)>", prepared.body)
    return found[1].decode() if found else ""
