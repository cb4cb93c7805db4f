"""Bytes in inputs and outputs: kept exactly under a declared encoding, refused without one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from workflows.core.definitions import Base64, Workflow
from workflows.core.errors import InvalidDefinition, InvalidInput
from workflows.core.values import from_json, to_json

NO_TEXT = b"\x00\xff\xfe the rest"


class Encoded(BaseModel):
    model_config = ConfigDict(ser_json_bytes="hex", val_json_bytes="hex")

    body: bytes
    before: Encoded | None = None


class OneWay(BaseModel):
    model_config = ConfigDict(ser_json_bytes="base64")

    body: bytes


class Around(BaseModel):
    inner: Encoded
    body: bytes


@dataclass
class Page:
    name: str
    body: Base64


@dataclass
class Bare:
    body: bytes | None = None


KEPT: dict[str, tuple[Any, Any]] = {
    "alone": (Base64, NO_TEXT),
    "in a list": (list[Base64], [NO_TEXT, b""]),
    "in a dataclass": (Page, Page("a", NO_TEXT)),
    "in a model": (Encoded, Encoded(body=NO_TEXT, before=Encoded(body=b"\x80"))),
}


@pytest.mark.parametrize(("annotation", "value"), KEPT.values(), ids=KEPT)
def test_declared_bytes_come_back_as_they_were(annotation: Any, value: Any) -> None:
    stored = to_json(value, annotation, limit=1000, what="it")

    assert from_json(stored, annotation, what="it") == value


def test_a_step_keeps_what_its_annotation_declares() -> None:
    flow = Workflow("bytes_kept")

    @flow.step()
    def step(run) -> Base64:
        """Give bytes"""
        return NO_TEXT

    returns = flow.steps["step"].returns
    stored = to_json(NO_TEXT, returns, limit=1000, what="it")

    assert from_json(stored, returns, what="it") == NO_TEXT


def test_text_that_is_no_base64_is_no_value() -> None:
    with pytest.raises(InvalidInput, match=r"input of x: at body: .*no base64"):
        from_json({"name": "a", "body": "A$"}, Page, what="input of x")


REFUSED = [bytes, list[bytes], dict[str, bytes], Bare, OneWay, Around, tuple[Page, bytes]]


@pytest.mark.parametrize("annotation", REFUSED, ids=str)
def test_an_output_with_undeclared_bytes_is_refused_at_its_line(annotation: Any) -> None:
    flow = Workflow("bytes_out")

    def step(run):
        """Give bytes"""

    step.__annotations__["return"] = annotation
    with pytest.raises(InvalidDefinition, match=r"test_byte_text\.py:\d+: an output .* has bytes"):
        flow.step()(step)


def test_an_input_with_undeclared_bytes_is_refused_at_its_line() -> None:
    with pytest.raises(InvalidDefinition, match=r"test_byte_text\.py:\d+: an input .* has bytes"):
        Workflow("bytes_in", input=Bare)


def test_an_input_that_no_value_can_have_is_refused_with_the_reason() -> None:
    class Opaque:
        pass

    with pytest.raises(InvalidDefinition, match=r"\.py:\d+: an input of type Opaque .*\(Unable to"):
        Workflow("opaque_in", input=Opaque)
