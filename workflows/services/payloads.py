"""What a stored event brought, as the type that a wait declares."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from workflows.core.errors import DeliveryRefused, InvalidInput
from workflows.core.extraction import read_body
from workflows.core.json_text import BYTE_ORDER_MARK, NotJson
from workflows.core.sources import Scheme
from workflows.core.unpacking import unpacked
from workflows.core.values import adapter, first_problem


@dataclass(frozen=True, slots=True)
class Kept:
    """The body of an event as it came, and what its source says of it."""

    body: bytes
    encoding: str
    scheme: str
    max_bytes: int


def payload_of(event: Kept, annotation: Any) -> Any:
    """Read the kept body of an event.

    Numbers are read as they were written, where the type takes them so: a `Decimal` loses nothing.

    Raises:
        InvalidInput: it does not fit; names the place and never the value.
    """
    limit = max(event.max_bytes, len(event.body))
    try:
        body = unpacked(event.body, event.encoding, limit)
        if event.scheme == Scheme.AWS_SNS:
            # What the sender signed lies inside; text only, so that nothing is lost on the way.
            body = json.dumps(read_body(body, Scheme.AWS_SNS)).encode()
        return adapter(annotation).validate_json(body.removeprefix(BYTE_ORDER_MARK))
    except (NotJson, DeliveryRefused) as problem:
        raise InvalidInput(f"its body cannot be read: {problem}") from problem
    except ValidationError as error:
        raise InvalidInput(first_problem(error)) from error
