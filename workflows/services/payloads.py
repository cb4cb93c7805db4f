"""What a stored event brought, as the type that a wait declares."""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError

from workflows.core.errors import DeliveryRefused, InvalidInput
from workflows.core.extraction import read_body
from workflows.core.json_text import BYTE_ORDER_MARK, NotJson
from workflows.core.sources import Scheme
from workflows.core.unpacking import unpacked
from workflows.core.values import adapter, first_problem
from workflows.models import Event


def payload_of(event: Event, annotation: Any) -> Any:
    """Read the kept body of an event, which comes with its source.

    Numbers are read as they were written, where the type takes them so: a `Decimal` loses nothing.

    Raises:
        InvalidInput: it does not fit; names the place and never the value.
    """
    assert event.body is not None, "the caller has looked"
    limit = max(event.source.max_bytes, len(event.body))
    try:
        body = unpacked(bytes(event.body), event.encoding, limit)
        if event.source.scheme == Scheme.AWS_SNS:
            # What the sender signed lies inside; text only, so that nothing is lost on the way.
            body = json.dumps(read_body(body, Scheme.AWS_SNS)).encode()
        return adapter(annotation).validate_json(body.removeprefix(BYTE_ORDER_MARK))
    except (NotJson, DeliveryRefused) as problem:
        raise InvalidInput(f"its body cannot be read: {problem}") from problem
    except ValidationError as error:
        raise InvalidInput(first_problem(error)) from error
