"""How a request is written: paths with names in them, bodies, markers, and what was meant by it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

from reconciliation.core.errors import InvalidProvider

# Clocks differ, also the provider's from ours.
SINCE_MARGIN = timedelta(minutes=10)


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


def filled(value: Any, names: Mapping[str, str]) -> Any:
    """Return a copy of a body in which {names} of every text are filled."""
    match value:
        case str():
            for name, text in names.items():
                value = value.replace(f"{{{name}}}", text)
            return value
        case dict():
            return {key: filled(inner, names) for key, inner in value.items()}
        case list():
            return [filled(inner, names) for inner in value]
        case _:
            return value


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


def encoded(body: Mapping[str, Any], encoding: str) -> tuple[str, bytes]:
    """Return the content type and the bytes of a body."""
    if encoding == "form":
        return "application/x-www-form-urlencoded", urlencode(list(form_fields(body))).encode()
    return "application/json", json.dumps(body).encode()


def form_fields(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The fields of a form: what is nested stands in brackets, as in metadata[order]."""
    match value:
        case Mapping():
            for key, inner in value.items():
                yield from form_fields(inner, f"{name}[{key}]" if name else str(key))
        case list() | tuple():
            for place, inner in enumerate(value):
                yield from form_fields(inner, f"{name}[{place}]")
        case bool():
            yield name, str(value).lower()
        case None:
            yield name, ""
        case _:
            yield name, str(value)


def meant(parameters: Mapping[str, Any], name: str = "") -> dict[str, Any]:
    """The parameters by the names that a record is compared by: what is nested has dots."""
    found: dict[str, Any] = {}
    for key, value in parameters.items():
        full = f"{name}.{key}" if name else str(key)
        if isinstance(value, Mapping):
            found |= meant(value, full)
        elif not isinstance(value, list | tuple):
            found[full] = value
    return found


def since(operation: UUID) -> int:
    """The Unix time of shortly before an operation was made, which its ID tells (UUIDv7).

    Of an ID that tells no time, 0: then everything is asked for.
    """
    if operation.version != 7:  # noqa: PLR2004 (the kind of ID that begins with the time)
        return 0
    made = (operation.int >> 80) // 1000
    return max(made - int(SINCE_MARGIN.total_seconds()), 0)
