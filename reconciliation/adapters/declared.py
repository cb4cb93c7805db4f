"""What a provider's settings declare to the generic adapter: a new provider without code.

Paths into answers are JMESPath, compiled where they are declared. Templates take names in braces:
`{operation}` is our operation's ID, `{since}` the Unix time of shortly before it was made.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from workflows.core.json_text import exact_text
from workflows.core.words import is_storable


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def compiled(expression: str) -> str:
    """Check a JMESPath where it is declared."""
    try:
        jmespath.compile(expression)
    except JMESPathError as error:
        raise ValueError(f"no JMESPath: {error}") from error
    return expression


def sendable(headers: dict[str, str]) -> dict[str, str]:
    """Check that headers are such as HTTP carries, and none that are not the settings' to set."""
    for name, value in headers.items():
        if not (f"{name}{value}".isascii() and f"{name}{value}".isprintable()):
            raise ValueError(f"{name!r} has characters that no header carries")
        if name.lower() in NOT_DECLARED:
            raise ValueError(f"{name} is set by Romulus itself")
    return headers


NOT_DECLARED = {"host", "content-length", "transfer-encoding", "connection", "authorization"}
Path = Annotated[str, AfterValidator(compiled)]
Headers = Annotated[dict[str, str], AfterValidator(sendable)]


class PagesSettings(Strict):
    """A list in pages. `more` says that there is another one, and `last` fills {last} in `path`."""

    path: str
    more: Path
    last: Path


class LookUpSettings(Strict):
    """How to ask for the records of an operation.

    Attributes:
        by: which of the contract's ways this is; empty: its usual one.
        path: takes {operation} and {since}.
        body: makes it a POST with this JSON; its texts take the same names.
        items: finds the records in the answer (JMESPath).
    """

    by: str = ""
    path: str
    body: dict[str, Any] | None = None
    items: Path
    pages: PagesSettings | None = None


class VerifySettings(Strict):
    """`path` takes {resource}; `expect` maps a JMESPath in the answer to the value it must have."""

    path: str
    expect: Annotated[dict[Path, Any], Field(min_length=1)]


class PreconditionSettings(Strict):
    """Where the state is read that an intent's precondition speaks of; `path` takes parameters by
    name, such as /orders/{order}."""

    path: str


class ActionSettings(Strict):
    """One declared action.

    Attributes:
        path: may take parameters by name, such as /tickets/{ticket}/comments; those are not sent
            in the body again.
        marker: where in the body our operation ID goes, by names with dots.
        resource: where the answer names the created resource (JMESPath).
        record: what a record shows, by JMESPath: `operation`, `account`, `region`, or the name of
            a parameter, such as amount or card.last4.
        fixed: goes into every body beside the parameters.
    """

    method: Literal["POST", "PUT", "PATCH", "DELETE"] = "POST"
    path: str
    encoding: Literal["json", "form"] = "json"
    headers: Headers = {}
    fixed: dict[str, Any] = {}
    marker: str = ""
    resource: Path = "id"
    record: dict[str, Path] = {}
    look_up: LookUpSettings | None = None
    verify: VerifySettings | None = None
    precondition: PreconditionSettings | None = None


class AuthSettings(Strict):
    """How the credential is shown: as a bearer's token, as user:password, or in a header as it
    is."""

    scheme: Literal["bearer", "basic", "header"] = "bearer"
    header: str = "Authorization"


class HttpSettings(Strict):
    """The whole of a provider's settings.

    `error_type` and `error_code` find what the contract's answers name (JMESPath).
    """

    actions: dict[str, ActionSettings]
    auth: AuthSettings = AuthSettings()
    headers: Headers = {}
    error_type: Path = "error.type"
    error_code: Path = "error.code"


LONGEST_ID = 300  # of a resource; its column's length


def search(path: str, document: Any) -> Any:
    """What `path` finds; None also where the answer has another form than the path expects."""
    if not path or document is None:
        return None
    try:
        return jmespath.search(path, document)
    except JMESPathError:
        return None


def text_at(path: str, document: Any) -> str | None:
    value = search(path, document)
    return None if value is None else str(value)


def id_at(path: str, document: Any) -> str | None:
    """A resource's ID; None where there is none, or none that can be kept as it is.

    It is a text or a number: `false` or an object where it should be names nothing.
    """
    found_id = exact_text(search(path, document)) or ""
    return found_id if is_id(found_id) else None


def is_id(text: str) -> bool:
    """Whether a resource could be called so."""
    return bool(text.strip()) and is_storable(text, LONGEST_ID)
