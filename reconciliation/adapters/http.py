"""The generic HTTP/JSON adapter: a provider is declared, not programmed.

How far a request came is told by the connection (`network`, `wire`), never by an exception's name.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar
from uuid import UUID

from pydantic import ValidationError

from reconciliation.adapters.answers import found, in_words, is_throttled, retry_after
from reconciliation.adapters.base import Prepared, Transmitted, Unavailable, Verified
from reconciliation.adapters.declared import (
    ActionSettings,
    HttpSettings,
    LookUpSettings,
    id_at,
    search,
    text_at,
)
from reconciliation.adapters.over_http import OverHttp
from reconciliation.adapters.requests import encoded, fill, filled, meant, since, with_marker
from reconciliation.adapters.uptime import uptime
from reconciliation.adapters.wire import Exchange
from reconciliation.core.classify import Answer, Phase, Report
from reconciliation.core.contracts import KeyRule
from reconciliation.core.errors import InvalidProvider
from reconciliation.core.matching import Found

OK = 200
MOST_PAGES = 20  # of a list; a longer one is not read to its end, and proves nothing


class HttpAdapter(OverHttp):
    """Speaks HTTP and JSON as the provider's settings declare."""

    # What an action has where the settings do not say; an adapter of one provider knows more.
    defaults: ClassVar[Mapping[str, Any]] = {}

    @cached_property
    def settings(self) -> HttpSettings:
        try:
            return HttpSettings.model_validate(self.with_defaults())
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            path = ".".join(str(part) for part in problem["loc"])
            raise InvalidProvider(f"settings: at {path}: {problem['msg']}") from error

    def with_defaults(self) -> dict[str, Any]:
        given = dict(self.connection.settings)
        actions = given.get("actions")
        if self.defaults and isinstance(actions, dict):
            given["actions"] = {
                name: self.completed(action) if isinstance(action, dict) else action
                for name, action in actions.items()
            }
        return given

    def completed(self, action: dict[str, Any]) -> dict[str, Any]:
        """An action with what its provider is known for; what is declared counts first."""
        record = {**self.defaults.get("record", {}), **action.get("record", {})}
        return {**self.defaults, **action, "record": record}

    def action(self, name: str) -> ActionSettings:
        try:
            return self.settings.actions[name]
        except KeyError:
            known = ", ".join(sorted(self.settings.actions)) or "none"
            raise InvalidProvider(f"no action {name!r} is declared; known: {known}") from None

    # --- the settings -----------------------------------------------------------------------

    def check(self) -> list[str]:
        try:
            actions = self.settings.actions
        except InvalidProvider as error:
            return [str(error)]
        problems = [
            f"action {name}: {problem}"
            for name, action in actions.items()
            for problem in self.action_problems(action)
        ]
        return problems + self.credential_problems() + self.common_problems()

    def credential_problems(self) -> list[str]:
        """Settings that say how it is shown mean that there is one: every write without it would be
        refused, and its run fail for good."""
        if "auth" in self.connection.settings and not self.connection.credential:
            return ["a credential: the settings say how it is shown (auth), and none is there"]
        return []

    def action_problems(self, action: ActionSettings) -> list[str]:
        contract = self.contract
        problems = [
            f"the contract has {what} and the action has none"
            for what, claimed, declared in (
                ("look-ups", contract.look_up, action.look_up),
                ("a check of the result", contract.verifies, action.verify),
            )
            if claimed and declared is None
        ]
        if not action.path.startswith(contract.namespace):
            problems.append(
                f"the contract {contract.slug} speaks of {contract.namespace} alone, and the "
                f"path is {action.path}: a provider of its own, with the contract of that part"
            )
        if contract.key and contract.key.methods and action.method not in contract.key.methods:
            heeded = ", ".join(contract.key.methods)
            problems.append(f"the provider heeds keys with {heeded} alone, not {action.method}")
        if contract.look_up and action.look_up:
            problems += self.look_up_problems(action, action.look_up)
        return problems

    def look_up_problems(self, action: ActionSettings, ask: LookUpSettings) -> list[str]:
        problems = []
        if "operation" not in action.record:
            problems.append(
                "its record shows no operation: a look-up counts only what carries our ID"
            )
        if ask.by and self.contract.asking_by(ask.by) is None:
            problems.append(f"the contract has no look-up by {ask.by!r}")
        return problems

    # --- the write --------------------------------------------------------------------------

    def prepare(
        self, action: str, parameters: Mapping[str, Any], operation: UUID, key: str
    ) -> Prepared:
        declared = self.action(action)
        path, rest = fill(declared.path, parameters)
        body = with_marker({**declared.fixed, **rest}, declared.marker, str(operation))
        path, headers, body = carrying(self.contract.key, key, path, body)
        kind, data = encoded(body, declared.encoding)
        headers = {"Content-Type": kind, **self.settings.headers, **declared.headers, **headers}
        return Prepared(declared.method, path, headers, data, meant(parameters))

    def transmit(
        self, prepared: Prepared, action: str, operation: UUID, transmission: UUID, seconds: float
    ) -> Transmitted:
        got = self.exchange(prepared, operation, transmission, seconds)
        if got.status is None:
            return Transmitted(Report(got.phase), detail=got.problem)
        return self.read_answer(self.action(action), got)

    def read_answer(self, declared: ActionSettings, got: Exchange) -> Transmitted:
        document = got.document
        answer = self.answer(declared, got, document)
        record = found(declared, document) if answer.resource is not None else None
        return Transmitted(
            Report(Phase.ANSWER, answer),
            self.censor.record(record) if record else None,
            self.request_id(got),
            in_words(got.status, answer.error_type, answer.error_code),
        )

    def answer(self, declared: ActionSettings, got: Exchange, document: Any) -> Answer:
        assert got.status is not None, "the caller has an answer"
        readable = isinstance(document, dict | list)
        rule = self.contract.request_id_header
        resource = id_at(declared.resource, document)
        return Answer(
            status=got.status,
            # A page from something in between carries neither the provider's own header nor JSON.
            authentic=readable and (rule is None or bool(got.header(rule))),
            complete=readable,
            resource=resource if resource and self.censor.is_clean(resource) else None,
            error_type=self.code(text_at(self.settings.error_type, document)),
            error_code=self.code(text_at(self.settings.error_code, document)),
            retry_after_seconds=retry_after(got),
        )

    def code(self, text: str | None) -> str | None:
        """A code as the contract may name it; a text that echoes the credential is none."""
        return text if text and self.censor.is_clean(text) else None

    # --- the questions ----------------------------------------------------------------------

    def look_up(
        self,
        action: str,
        operation: UUID,
        seconds: float,
        prepared: Prepared | None = None,  # noqa: ARG002 (its ID is enough here)
    ) -> list[Found] | Unavailable:
        declared = self.action(action)
        if declared.look_up is None:
            return Unavailable(f"action {action} declares no look-up")
        items = self.listed(declared.look_up, operation, seconds)
        if isinstance(items, Unavailable):
            return items
        return [self.censor.record(found(declared, item)) for item in items]

    def listed(
        self, ask: LookUpSettings, operation: UUID, seconds: float
    ) -> list[Any] | Unavailable:
        """Every item of a list. One that is not read to its end shows nothing of the rest."""
        ends = uptime() + seconds
        names: dict[str, str] = {"operation": str(operation), "since": str(since(operation))}
        path, items = ask.path, []
        for _ in range(MOST_PAGES):
            left = ends - uptime()
            document = self.ask(fill(path, names)[0], operation, left, filled(ask.body, names))
            if isinstance(document, Unavailable):
                return document
            page = search(ask.items, document)
            if not isinstance(page, list):
                return Unavailable("its answer holds no list of records")
            items += page
            if ask.pages is None or not search(ask.pages.more, document):
                return items
            last = text_at(ask.pages.last, document)
            if not last:
                return Unavailable("its list has a page more, and does not say which")
            path, names = ask.pages.path, {**names, "last": last}
        return Unavailable(f"its list is longer than {MOST_PAGES} pages")

    def verify(self, action: str, resource: str, seconds: float) -> Verified | Unavailable:
        declared = self.action(action)
        if declared.verify is None:
            return Unavailable(f"action {action} declares no check of its result")
        path, _ = fill(declared.verify.path, {"resource": resource})
        document = self.ask(path, None, seconds)
        if isinstance(document, Unavailable):
            return document
        states = {name: search(name, document) for name in declared.verify.expect}
        detail = ", ".join(f"{name} is {value}" for name, value in states.items())
        return Verified(states == declared.verify.expect, self.censor.clean(detail, 1000))

    def precondition_path(self, action: str, parameters: Mapping[str, Any]) -> str:
        declared = self.action(action)
        if declared.precondition is None:
            raise InvalidProvider(f"action {action} declares no precondition, and the intent has")
        return fill(declared.precondition.path, parameters)[0]

    def read_before(self, prepared: Prepared, seconds: float) -> Verified | Unavailable:
        document = self.ask(prepared.read_path, None, seconds)
        if isinstance(document, Unavailable):
            return document
        return self.as_expected(prepared, document)

    def ask(self, path: str, operation: UUID | None, seconds: float, body: Any = None) -> Any:
        """Return the JSON answer of a question, or `Unavailable`."""
        kind, data = encoded(body, "json") if body is not None else ("", b"")
        headers = {**self.settings.headers, **({"Content-Type": kind} if kind else {})}
        asked = Prepared("POST" if data else "GET", path, headers, data)
        got = self.exchange(asked, operation, None, seconds)
        if got.status is None:
            return Unavailable(got.problem)
        if got.status != OK or got.document is None:
            return Unavailable(f"it answered {got.status}", retry_after(got), is_throttled(got))
        return got.document

    def headers(self, _operation: UUID | None, _transmission: UUID | None) -> dict[str, str]:
        credential, auth = self.connection.credential, self.settings.auth
        if not credential:
            return {}
        match auth.scheme:
            case "bearer":
                return {auth.header: f"Bearer {credential}"}
            case "basic":
                return {auth.header: f"Basic {base64.b64encode(credential.encode()).decode()}"}
            case "header":
                return {auth.header: credential}


def carrying(
    rule: KeyRule | None, key: str, path: str, body: dict[str, Any]
) -> tuple[str, dict[str, str], dict[str, Any]]:
    """Put the key where the contract says: return path, headers and body.

    Raises:
        InvalidProvider: a parameter stands there.
    """
    if rule is None:
        return path, {}, body
    text = f'"{key}"' if rule.quoted else key
    match rule.carrier:
        case "header":
            return path, {rule.name: text}, body
        case "query":
            return f"{path}{'&' if '?' in path else '?'}{rule.name}={text}", {}, body
        case "body":
            return path, {}, with_marker(body, rule.name, text)
