"""The generic HTTP/JSON adapter: a provider is declared, not programmed.

Each call opens a connection of its own, so that no dead one is ever used again; retries, redirects
and proxies from the environment are off. How far a request came is read from the connection's own
trace, never from an exception's name.
"""

from __future__ import annotations

import json
import math
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Annotated, Any
from urllib.parse import quote
from uuid import UUID

import httpx
import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from reconciliation.adapters.base import Adapter, Prepared, Transmitted, Unavailable, Verified
from reconciliation.core.classify import Answer, Phase, Report
from reconciliation.core.errors import InvalidProvider
from reconciliation.core.matching import Found
from workflows.core.words import is_storable, storable

MAX_ANSWER_BYTES = 1024 * 1024
OK = 200
KEY_LENGTH = 36  # a key is the operation's ID
# A provider that says "come back in a year" is asked again tomorrow.
LONGEST_RETRY_AFTER_SECONDS = 86_400.0
LONGEST_ID = 300  # of a resource; its column's length


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def compiled(expression: str) -> str:
    """Check a JMESPath where it is declared."""
    try:
        jmespath.compile(expression)
    except JMESPathError as error:
        raise ValueError(f"no JMESPath: {error}") from error
    return expression


Path = Annotated[str, AfterValidator(compiled)]


class LookUpSettings(Strict):
    """`path` takes {operation}; `items` finds the records in the answer (JMESPath)."""

    path: str
    items: Path


class VerifySettings(Strict):
    """`path` takes {resource}; `expect` maps a JMESPath in the answer to the value it must have."""

    path: str
    expect: Annotated[dict[Path, Any], Field(min_length=1)]


class ActionSettings(Strict):
    """One declared action.

    Attributes:
        path: may take parameters by name, such as /tickets/{ticket}/comments; those are not sent
            in the body again.
        marker: where in the body our operation ID goes, by names with dots.
        resource: where the answer names the created resource (JMESPath).
        record: what a record shows, by JMESPath: `operation`, `account`, `region`, or the name of
            a parameter.
    """

    method: str = "POST"
    path: str
    marker: str = ""
    resource: Path = "id"
    record: dict[str, Path] = {}
    look_up: LookUpSettings | None = None
    verify: VerifySettings | None = None


class HttpSettings(Strict):
    actions: dict[str, ActionSettings]
    error_type: Path = "error.type"
    error_code: Path = "error.code"


@dataclass
class Progress:
    """How far the request came, told by the connection while it goes."""

    deadline: float
    phase: Phase = Phase.RESOLVE

    def __call__(self, event: str, _info: Mapping[str, Any]) -> None:
        match event:
            case "connection.connect_tcp.started":
                self.phase = Phase.CONNECT
            case "connection.start_tls.started":
                self.phase = Phase.TLS
            case "http11.send_request_headers.started":
                # A worker that was frozen until now must not send: somebody may have taken over.
                if time.monotonic() > self.deadline:
                    raise httpx.WriteTimeout("the time in which it could be sent is over")
                self.phase = Phase.SEND
            case "http11.receive_response_headers.started":
                self.phase = Phase.WAIT


class HttpAdapter(Adapter):
    """Speaks HTTP and JSON as the provider's settings declare."""

    @cached_property
    def settings(self) -> HttpSettings:
        try:
            return HttpSettings.model_validate(self.connection.settings)
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            path = ".".join(str(part) for part in problem["loc"])
            raise InvalidProvider(f"settings: at {path}: {problem['msg']}") from error

    def check(self) -> list[str]:
        try:
            actions = self.settings.actions
        except InvalidProvider as error:
            return [str(error)]
        problems = [
            f"action {name}: the contract has {what} and the action has none"
            for name, action in actions.items()
            for what, claimed, declared in (
                ("look-ups", self.contract.look_up, action.look_up),
                ("a check of the result", self.contract.verifies, action.verify),
            )
            if claimed and declared is None
        ]
        rule = self.contract.key
        if rule is not None and rule.max_length < KEY_LENGTH:
            problems.append(
                f"the provider's keys have {rule.max_length} characters at most, ours {KEY_LENGTH}"
            )
        return problems

    def action(self, name: str) -> ActionSettings:
        try:
            return self.settings.actions[name]
        except KeyError:
            known = ", ".join(sorted(self.settings.actions)) or "none"
            raise InvalidProvider(f"no action {name!r} is declared; known: {known}") from None

    # --- the write --------------------------------------------------------------------------

    def prepare(
        self, action: str, parameters: Mapping[str, Any], operation: UUID, key: str
    ) -> Prepared:
        declared = self.action(action)
        path, rest = fill(declared.path, parameters)
        body = with_marker(rest, declared.marker, str(operation))
        headers = {"Content-Type": "application/json"}
        rule = self.contract.key
        if rule is not None and rule.carrier == "header":
            headers[rule.name] = key
        elif rule is not None:
            body[rule.name] = key
        return Prepared(declared.method, path, headers, json.dumps(body).encode())

    def transmit(
        self, prepared: Prepared, action: str, operation: UUID, transmission: UUID, seconds: float
    ) -> Transmitted:
        progress = Progress(time.monotonic() + seconds)
        headers = {**prepared.headers, **self.headers(operation, transmission)}
        try:
            with self.open(prepared.method, prepared.path, headers, prepared.body, progress) as got:
                return self.read_answer(self.action(action), got, progress)
        except httpx.HTTPError as error:
            # The class name is for people only: it proves nothing.
            return Transmitted(Report(progress.phase), detail=f"no answer ({type(error).__name__})")

    def read_answer(
        self, declared: ActionSettings, response: httpx.Response, progress: Progress
    ) -> Transmitted:
        request_id = self.request_id(response)
        document = read_json(response, progress)
        progress.phase = Phase.ANSWER
        answer = self.answer(declared, response, document)
        record = found(declared, document) if answer.resource is not None else None
        return Transmitted(
            Report(Phase.ANSWER, answer), record, request_id, f"HTTP {response.status_code}"
        )

    def answer(self, declared: ActionSettings, response: httpx.Response, document: Any) -> Answer:
        readable = isinstance(document, dict)
        rule = self.contract.request_id_header
        return Answer(
            status=response.status_code,
            # A page from something in between carries neither the provider's own header nor JSON.
            authentic=readable and (rule is None or rule in response.headers),
            complete=readable,
            resource=id_at(declared.resource, document),
            error_type=text_at(self.settings.error_type, document),
            error_code=text_at(self.settings.error_code, document),
            retry_after_seconds=retry_after(response),
        )

    # --- the questions ----------------------------------------------------------------------

    def look_up(self, action: str, operation: UUID, seconds: float) -> list[Found] | Unavailable:
        declared = self.action(action)
        if declared.look_up is None:
            return Unavailable(f"action {action} declares no look-up")
        path, _ = fill(declared.look_up.path, {"operation": str(operation)})
        document = self.ask(path, operation, seconds)
        if isinstance(document, Unavailable):
            return document
        items = jmespath.search(declared.look_up.items, document)
        if not isinstance(items, list):
            return Unavailable("its answer holds no list of records")
        return [found(declared, item) for item in items]

    def verify(self, action: str, resource: str, seconds: float) -> Verified | Unavailable:
        declared = self.action(action)
        if declared.verify is None:
            return Unavailable(f"action {action} declares no check of its result")
        path, _ = fill(declared.verify.path, {"resource": resource})
        document = self.ask(path, None, seconds)
        if isinstance(document, Unavailable):
            return document
        states = {name: jmespath.search(name, document) for name in declared.verify.expect}
        detail = ", ".join(f"{name} is {value}" for name, value in states.items())
        return Verified(states == declared.verify.expect, detail)

    def ask(self, path: str, operation: UUID | None, seconds: float) -> Any:
        """Return the JSON answer of a read, or `Unavailable`."""
        progress = Progress(time.monotonic() + seconds)
        try:
            with self.open("GET", path, self.headers(operation, None), b"", progress) as response:
                document = read_json(response, progress)
        except httpx.HTTPError as error:
            return Unavailable(f"no answer ({type(error).__name__})")
        if response.status_code != OK or document is None:
            return Unavailable(f"it answered {response.status_code}", retry_after(response))
        return document

    # --- the wire ---------------------------------------------------------------------------

    @contextmanager
    def open(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, progress: Progress
    ) -> Iterator[httpx.Response]:
        """Send one request over a connection of its own and give its answer while it is read."""
        timeout = httpx.Timeout(max(progress.deadline - time.monotonic(), 0.001))
        transport = httpx.HTTPTransport(verify=certificates(), retries=0, trust_env=False)
        with (
            httpx.Client(transport=transport, trust_env=False, timeout=timeout) as client,
            client.stream(
                method,
                self.connection.base_url.rstrip("/") + path,
                headers=dict(headers),
                content=body,
                follow_redirects=False,
                extensions={"trace": progress},
            ) as response,
        ):
            yield response

    def headers(self, _operation: UUID | None, _transmission: UUID | None) -> dict[str, str]:
        """The headers that are not part of the stored request: credentials and tracing."""
        if not self.connection.credential:
            return {}
        return {"Authorization": f"Bearer {self.connection.credential}"}

    def request_id(self, response: httpx.Response) -> str:
        name = self.contract.request_id_header
        return storable(response.headers.get(name, ""), 200) if name else ""


@cache
def certificates() -> ssl.SSLContext:
    """The machine's certificates: read once, since reading them takes longer than a request."""
    return ssl.create_default_context()


def fill(template: str, values: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Fill {names} of a path, quoted; return the path and the values that it did not take.

    Raises:
        InvalidProvider: the path takes a value that is not there, or one that would lead to
            another address.
    """
    taken = {name for name in values if f"{{{name}}}" in template}
    for name in taken:
        if str(values[name]) in ("", ".", ".."):
            raise InvalidProvider(f"the path {template} cannot take {values[name]!r} as {name}")
    try:
        path = template.format_map({name: quote(str(values[name]), safe="") for name in taken})
    except KeyError as error:
        raise InvalidProvider(f"the path {template} takes {error}, which is not given") from error
    return path, {name: value for name, value in values.items() if name not in taken}


def with_marker(body: dict[str, Any], marker: str, operation: str) -> dict[str, Any]:
    """Return a copy of `body` that carries our operation ID at `marker`.

    Raises:
        InvalidProvider: a parameter stands there; it is not dropped.
    """
    if not marker:
        return dict(body)
    name, _, rest = marker.partition(".")
    if not rest and name not in body:
        return {**body, name: operation}
    inner = body.get(name, {})
    if not rest or not isinstance(inner, dict):
        raise InvalidProvider(f"parameter {name!r} stands where the provider's marker goes")
    return {**body, name: with_marker(inner, rest, operation)}


def read_json(response: httpx.Response, progress: Progress) -> Any:
    """Return the whole answer as JSON, or None when it is too large, too slow or no JSON.

    Raises:
        httpx.HTTPError: the answer broke off.
    """
    data = b""
    for chunk in response.iter_bytes():
        data += chunk
        if len(data) > MAX_ANSWER_BYTES or time.monotonic() > progress.deadline:
            return None
    try:
        return json.loads(data)
    except ValueError:
        return None


def text_at(path: str, document: Any) -> str | None:
    value = jmespath.search(path, document) if path and document is not None else None
    return None if value is None else str(value)


def id_at(path: str, document: Any) -> str | None:
    """A resource's ID; None where there is none, or none that can be kept as it is."""
    found_id = text_at(path, document)
    return found_id if found_id and is_storable(found_id, LONGEST_ID) else None


def found(declared: ActionSettings, document: Any) -> Found:
    """Read a provider's record as the settings declare."""
    shown = {name: jmespath.search(path, document) for name, path in declared.record.items()}
    return Found(
        resource=id_at(declared.resource, document) or "",
        operation=shown.pop("operation", None),
        account=shown.pop("account", None),
        region=shown.pop("region", None),
        fields=shown,
    )


def retry_after(response: httpx.Response) -> float | None:
    """Retry-After in seconds; its date form is left to the contract's own pacing."""
    try:
        seconds = float(response.headers["Retry-After"])
    except (KeyError, ValueError):
        return None
    if not math.isfinite(seconds):
        return None
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER_SECONDS)
