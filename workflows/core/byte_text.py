"""Bytes in JSON, which has none: only with an encoding that is declared.

    @flow.step()
    def download(run) -> Base64: ...

Without one pydantic writes bytes as UTF-8 text. That works until the first byte that is none, and
then a step's work is done and cannot be kept. So it is refused where it is written.
"""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, ValidationInfo

CONFIG = ("ser_json_bytes", "val_json_bytes")
DECLARED = ("base64", "hex")


def encoded(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def decoded(value: Any, info: ValidationInfo) -> Any:
    """Text that comes from JSON as the bytes it stands for; what code gives is bytes already."""
    if info.mode != "json" or not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(f"this is no base64: {error}") from error


Base64 = Annotated[
    bytes,
    BeforeValidator(decoded),
    PlainSerializer(encoded, return_type=str, when_used="json"),
]
"""Bytes, kept as base64 text."""


def has_undeclared_bytes(schema: Any, *, declared: bool = False) -> bool:
    """Whether somewhere in a pydantic core schema bytes stand without an encoding.

    Args:
        schema: `TypeAdapter.core_schema`, or a part of it.
        declared: whether the model around this part declares one, in both directions.
    """
    match schema:
        case {"serialization": _}:
            return False  # its author says how it is written
        case {"type": "bytes"}:
            return not declared
        case {"config": dict(config)}:
            declared = all(config.get(name) in DECLARED for name in CONFIG)
        case list() | tuple():
            return any(has_undeclared_bytes(part, declared=declared) for part in schema)
        case dict():
            pass
        case _:
            return False
    parts = (part for name, part in schema.items() if name != "metadata")
    return any(has_undeclared_bytes(part, declared=declared) for part in parts)
