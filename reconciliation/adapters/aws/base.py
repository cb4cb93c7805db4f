"""What Amazon's services share: their settings, the signature, and how they name an error."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar
from uuid import UUID

from pydantic import ValidationError

from reconciliation.adapters.answers import in_words, is_throttled, retry_after
from reconciliation.adapters.aws.signing import Credential, sign
from reconciliation.adapters.base import Prepared, Transmitted, Unavailable, Verified
from reconciliation.adapters.declared import Strict
from reconciliation.adapters.over_http import OverHttp
from reconciliation.adapters.wire import Exchange, Request
from reconciliation.core.classify import Answer, Phase, Report
from reconciliation.core.errors import InvalidProvider
from reconciliation.core.matching import Found

MARKER = "romulus_operation"  # the attribute, tag or metadata that carries our operation ID
OK = range(200, 300)

Action = TypeVar("Action", bound=Strict)


class AwsAdapter(OverHttp, Generic[Action]):
    """Speaks to one service in one region, as one account's user or role.

    Attributes:
        service: as the signature names it.
        declares: what the settings say of one action.
    """

    service: ClassVar[str]
    declares: type[Action]

    @cached_property
    def actions(self) -> dict[str, Action]:
        given = self.connection.settings
        if not isinstance(given, Mapping) or set(given) != {"actions"}:
            raise InvalidProvider('settings: {"actions": {…}} and nothing else')
        try:
            return {
                name: self.declares.model_validate(action)
                for name, action in given["actions"].items()
            }
        except (ValidationError, AttributeError) as error:
            said = (
                error.errors(include_url=False, include_input=False)[0]
                if isinstance(error, ValidationError)
                else {"loc": (), "msg": "an object with the actions by name"}
            )
            path = ".".join(str(part) for part in ("actions", *said["loc"]))
            raise InvalidProvider(f"settings: at {path}: {said['msg']}") from error

    def action(self, name: str) -> Action:
        try:
            return self.actions[name]
        except KeyError:
            known = ", ".join(sorted(self.actions)) or "none"
            raise InvalidProvider(f"no action {name!r} is declared; known: {known}") from None

    def check(self) -> list[str]:
        problems = self.common_problems()
        try:
            assert self.actions is not None
            assert self.credential is not None
        except InvalidProvider as error:
            problems.append(str(error))
        if not self.connection.region:
            problems.append("a region: keys and names count within one, and it is signed")
        return problems

    @cached_property
    def credential(self) -> Credential:
        return Credential.parse(self.connection.credential)

    def signed(self, request: Request) -> Request:
        region, now = self.connection.region, datetime.now(UTC)
        return sign(request, self.address.authority, self.service, region, self.credential, now)

    # --- the write --------------------------------------------------------------------------

    def transmit(
        self, prepared: Prepared, action: str, operation: UUID, transmission: UUID, seconds: float
    ) -> Transmitted:
        got = self.exchange(prepared, operation, transmission, seconds)
        if got.status is None:
            return Transmitted(Report(got.phase), detail=got.problem)
        made = self.made(self.action(action), prepared, got) if got.status in OK else None
        record = self.censor.record(made) if made else None
        code = self.error_code(got)
        answer = Answer(
            status=got.status,
            authentic=self.is_authentic(got),
            complete=self.is_complete(got),
            resource=(record.resource or None) if record else None,
            error_code=code,
            retry_after_seconds=retry_after(got),
        )
        return Transmitted(
            Report(Phase.ANSWER, answer),
            record,
            self.request_id(got),
            in_words(got.status, None, code),
        )

    @abstractmethod
    def made(self, action: Action, prepared: Prepared, got: Exchange) -> Found | None:
        """What an answer of success shows of what was made; None when it shows nothing."""

    @abstractmethod
    def error_code(self, got: Exchange) -> str | None:
        """The error that an answer names."""

    def is_authentic(self, got: Exchange) -> bool:
        return bool(self.request_id(got))

    def is_complete(self, got: Exchange) -> bool:
        return got.body is not None

    # --- the questions ----------------------------------------------------------------------

    def asked(self, prepared: Prepared, operation: UUID | None, seconds: float) -> Exchange:
        return self.exchange(prepared, operation, None, seconds)

    def not_answered(self, got: Exchange) -> Unavailable:
        if got.status is None:
            return Unavailable(got.problem)
        code = self.error_code(got)
        said = in_words(got.status, None, code)
        return Unavailable(f"it answered {said}", retry_after(got), is_throttled(got, code))

    def verify(self, action: str, resource: str, seconds: float) -> Verified | Unavailable:  # noqa: ARG002
        return Unavailable(f"action {action} declares no check of its result")


# --- XML --------------------------------------------------------------------------------------


def parsed(body: bytes | None) -> ET.Element | None:
    """The document of an answer, its names without namespaces; None when it is none.

    One that declares entities is none: they can be made to grow without end. Nor is one in which
    that could not be seen, since each character takes two bytes.
    """
    if not body or b"\0" in body or b"<!" in body.replace(b"<![CDATA[", b""):
        return None
    try:
        root = ET.fromstring(body)  # noqa: S314 (nothing is declared in it, see above)
    except ET.ParseError:
        return None
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root


def text_of(element: ET.Element | None, path: str) -> str | None:
    found = element.findtext(path) if element is not None else None
    return found or None


def query_fields(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The fields of a query: lists are counted from one, as in SecurityGroupId.1."""
    match value:
        case Mapping():
            for key, inner in value.items():
                yield from query_fields(inner, f"{name}.{key}" if name else str(key))
        case list() | tuple():
            for place, inner in enumerate(value, start=1):
                yield from query_fields(inner, f"{name}.{place}")
        case bool():
            yield name, str(value).lower()
        case _:
            yield name, str(value)
