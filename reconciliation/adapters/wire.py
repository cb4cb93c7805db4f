"""One HTTP request on the wire, byte for byte as it is given, and its answer.

Each exchange has a connection of its own, so that no dead one is ever used again. There is no
retry, no redirect, no proxy from the environment, no cookie, no compression and no hidden timeout.
Nothing is raised for what the network does: how far it came is in the result.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpcore
import structlog

from reconciliation.adapters.network import (
    SAID,
    Broken,
    Channel,
    OutOfTime,
    Progress,
    Unreachable,
    certificates,
    connect,
)
from reconciliation.adapters.uptime import uptime
from reconciliation.core.addresses import Address, Allowed
from reconciliation.core.classify import Phase
from reconciliation.core.contracts import Deadlines
from workflows.core.json_text import no_number, once_each

log = structlog.get_logger(__name__)

MAX_ANSWER_BYTES = 1024 * 1024
NO_ANSWER = "no whole answer came"


@dataclass(frozen=True)
class Request:
    """What leaves. `headers` are whole: nothing but the host and the length is added."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class Exchange:
    """What came of one request.

    Attributes:
        status: None when no answer came.
        body: None when it did not come whole: cut off, too late, too large.
        problem: for people, when there is no whole answer; it tells no more than how far it came.
    """

    phase: Phase
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    problem: str = ""

    def header(self, name: str) -> str:
        return self.headers.get(name.lower(), "")

    @property
    def document(self) -> Any:
        """The answer as JSON; None when it is none, or none that means one thing."""
        if self.body is None:
            return None
        try:
            return json.loads(self.body, object_pairs_hook=once_each, parse_constant=no_number)
        except (ValueError, RecursionError):
            return None


def exchange(
    address: Address,
    allowed: tuple[Allowed, ...],
    request: Request,
    limits: Deadlines,
    seconds: float,
) -> Exchange:
    """Send `request` once and read its answer; all of it within `seconds`."""
    progress = Progress(uptime() + seconds, limits)
    try:
        return spoken(address, allowed, request, progress)
    except Unreachable as error:
        return Exchange(progress.phase, problem=str(error))
    except UnicodeEncodeError:
        return Exchange(progress.phase, problem="a header or a path that HTTP cannot carry")
    except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as error:
        # Its name proves nothing, and its text may hold what was sent.
        log.info("wire.broken", phase=progress.phase, error=type(error).__name__)
        said = SAID.get(progress.phase, NO_ANSWER)
        return Exchange(progress.phase, problem=said)


def spoken(
    address: Address, allowed: tuple[Allowed, ...], request: Request, progress: Progress
) -> Exchange:
    written = sent(address, request)  # what cannot be written at all never connects
    backend = Backend(address, allowed, progress)
    scheme = address.scheme.encode()
    origin = httpcore.Origin(scheme, address.host.encode(), address.port)
    with httpcore.HTTPConnection(
        origin, ssl_context=certificates(), retries=0, network_backend=backend
    ) as connection:
        answer = connection.handle_request(written)
        headers = {name.decode().lower(): value.decode("latin-1") for name, value in answer.headers}
        try:
            body = read(answer.iter_stream())
            progress.phase = Phase.ANSWER
        finally:
            answer.close()
    problem = "" if body is not None else NO_ANSWER
    return Exchange(Phase.ANSWER, answer.status, headers, body, problem)


def sent(address: Address, request: Request) -> httpcore.Request:
    length = (
        {"Content-Length": str(len(request.body))}
        if request.body or request.method not in ("GET", "HEAD", "DELETE")
        else {}
    )
    headers = {"Host": address.authority, **request.headers, **length, "Connection": "close"}
    url = httpcore.URL(
        scheme=address.scheme.encode(),
        host=address.host.encode(),
        port=address.port,
        target=request.target.encode("ascii"),
    )
    return httpcore.Request(
        request.method.encode(),
        url,
        headers=[(name.encode(), value.encode("latin-1")) for name, value in headers.items()],
        content=request.body,
    )


def read(chunks: Iterable[bytes]) -> bytes | None:
    """The whole body; None when it is larger than any answer has to be."""
    whole = bytearray()
    for chunk in chunks:
        whole += chunk
        if len(whole) > MAX_ANSWER_BYTES:
            return None
    return bytes(whole)


class Backend(httpcore.NetworkBackend):
    """Gives the one connection, to an address that was checked."""

    def __init__(self, address: Address, allowed: tuple[Allowed, ...], progress: Progress) -> None:
        self._address, self._allowed, self._progress = address, allowed, progress

    def connect_tcp(
        self,
        host: str,  # noqa: ARG002 (the address was taken apart already)
        port: int,  # noqa: ARG002
        timeout: float | None = None,  # noqa: ARG002 (each wait has its own)
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Any = None,  # noqa: ARG002
    ) -> Stream:
        made = connect(self._address, self._allowed, self._progress)
        return Stream(Channel(made, self._progress), self._progress)


class Stream(httpcore.NetworkStream):
    """The connection as the HTTP client uses it; it notes how far the request came."""

    def __init__(self, channel: Channel, progress: Progress) -> None:
        self._channel, self._progress = channel, progress
        self._broken = False

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,  # noqa: ARG002 (ours is the machine's)
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> Stream:
        return Stream(self._channel.secure(server_hostname or ""), self._progress)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        try:
            self._channel.write(buffer, self._leaving)
        except OutOfTime as error:
            raise httpcore.WriteTimeout from error
        except Broken as error:
            self._broken = True  # an early answer may still be there to be read
            raise httpcore.WriteError from error

    def _leaving(self) -> None:
        self._progress.phase = Phase.SEND

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        if not self._broken:
            self._progress.phase = Phase.WAIT
        try:
            return self._channel.read(max_bytes)
        except OutOfTime as error:
            raise httpcore.ReadTimeout from error
        except Broken as error:
            raise httpcore.ReadError from error

    def close(self) -> None:
        self._channel.close()

    def get_extra_info(self, info: str) -> Any:  # noqa: ARG002 (HTTP/1.1 asks for nothing)
        return None
