"""What an event is, out of its payload: its ID, its type, its correlation, and whether it fits.

IDs and correlations are compared as exact text: nothing is folded, trimmed or rounded. Problems
name the place and never the value, for they are shown to people who may not see payloads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from workflows.core import sns
from workflows.core.events import MAX_CORRELATION, MAX_EVENT_ID, MAX_PROBLEM, MAX_TYPE
from workflows.core.json_text import NotJson, exact_text, parse
from workflows.core.schemes import Rules
from workflows.core.sources import Scheme
from workflows.core.words import is_storable, storable

# Of the mistakes in a payload the most telling is named; a hostile one may have millions.
MISTAKES_LOOKED_AT = 50
SHOWN = 120  # characters of what a schema asks for

Headers = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Found:
    """What was found in a payload; with a `problem` some of it may be missing."""

    event_id: str | None = None
    type: str = ""
    correlation: str = ""
    problem: str = ""


class Misfit(ValueError):
    """The payload is not as the source says; the message is the problem."""


def read_event(rules: Rules, headers: Headers, payload: Any) -> Found:
    """Return what `rules` find in a `payload` that was parsed. Everything is looked for, so that a
    problem with one leaves the others to be found again."""
    problems: list[str] = []

    def look(what: str, header: str, path: str, limit: int) -> str:
        try:
            if header:
                return from_header(headers, header, what, limit)
            return at(payload, path, what, limit)
        except Misfit as problem:
            problems.append(str(problem))
            return ""

    event_id = look("ID", rules.id_header, rules.id_path, MAX_EVENT_ID)
    its_type = look("type", rules.type_header, rules.type_path, MAX_TYPE)
    correlation = look("correlation", "", rules.correlation_path, MAX_CORRELATION)
    if not problems and its_type in rules.schemas:
        problems.append(schema_problem(payload, rules.schemas[its_type]))
    told = storable("; ".join(filter(None, problems)), MAX_PROBLEM)
    return Found(event_id or None, its_type, correlation, told)


def read_body(body: bytes, scheme: Scheme) -> Any:
    """The payload of an unpacked body, as paths and schemas see it. Raises `NotJson`: says why."""
    if not body.strip():
        raise NotJson("it is empty")
    payload = parse(body)
    return sns.signed_part(payload) if scheme is Scheme.AWS_SNS else payload


# --- places -----------------------------------------------------------------------------------


def from_header(headers: Headers, name: str, what: str, limit: int) -> str:
    value = headers.get(name, "")
    if not value:
        raise Misfit(f"no {what}: there is no {name} header")
    if not value.isascii():
        raise Misfit(f"the {what} in the {name} header is not ASCII")
    return fitting(value, what, f"in the {name} header", limit)


def at(payload: Any, path: str, what: str, limit: int) -> str:
    if not path:
        raise Misfit(f"no {what}: the source does not say where it stands")
    where = f"at {path}"
    try:
        value = jmespath.search(path, payload)
    except (JMESPathError, TypeError, ValueError, OverflowError, RecursionError):
        raise Misfit(f"no {what}: {path} cannot be looked up in this payload") from None
    if value is None:
        raise Misfit(f"no {what} {where}")
    text = exact_text(value)
    if text is None:
        raise Misfit(f"the {what} {where} is {kind_of(value)}, and has to be text or a number")
    return fitting(text, what, where, limit)


def fitting(text: str, what: str, where: str, limit: int) -> str:
    if not text:
        raise Misfit(f"the {what} {where} is empty")
    if len(text) > limit:
        raise Misfit(f"the {what} {where} is longer than {limit} characters")
    if not is_storable(text, limit):
        raise Misfit(f"the {what} {where} holds a character that is no text, such as NUL")
    return text


def kind_of(value: Any) -> str:
    kinds = {bool: "true or false", list: "a list", dict: "an object"}
    return kinds.get(type(value), "something else")


# --- schemas ----------------------------------------------------------------------------------


def schema_problem(payload: Any, schema: str) -> str:
    """Say where and how `payload` does not fit; empty when it does."""
    try:
        errors = validator(schema).iter_errors(payload)
        error = best_match(islice(errors, MISTAKES_LOOKED_AT))
    except Unresolvable:
        return "its schema refers to something that is not in it"
    except RecursionError:
        return "it is nested too deeply for its schema"
    return mistake(error) if error else ""


@lru_cache(maxsize=128)
def validator(text: str) -> Validator:
    """The validator of a schema; it fetches nothing that the schema may refer to."""
    schema = json.loads(text)
    made: Validator = validator_for(schema, default=Draft202012Validator)(
        schema, registry=Registry()
    )
    return made


def mistake(error: ValidationError) -> str:
    where = storable(error.json_path, SHOWN)
    if error.validator == "required" and isinstance(error.instance, dict):
        required: Any = error.validator_value
        missing = [name for name in required if name not in error.instance]
        return f"at {where}: {', '.join(missing)} is missing"[: 2 * SHOWN]
    if not isinstance(error.validator, str):  # a schema that is `false`
        return f"at {where}: its schema does not allow all that is there"
    asked = json.dumps({str(error.validator): error.validator_value}, ensure_ascii=False)
    return f"at {where}: its schema asks for {storable(asked, SHOWN)}"
