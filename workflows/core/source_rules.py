"""Whether a source of events can work as it is set up: the same for the admin's form and for code.

Everything is looked at, so that whoever sets it up is told of everything at once, field by field.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError
from jsonschema.exceptions import SchemaError
from jsonschema.validators import Draft202012Validator, validator_for
from pydantic import ValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from workflows.core import sns
from workflows.core.events import MAX_TYPE
from workflows.core.schemes import HABITS, SnsSettings, settings_of
from workflows.core.signatures import standard_key
from workflows.core.sources import Scheme
from workflows.core.unpacking import ENCODINGS
from workflows.core.words import is_storable

MEBIBYTE = 1024 * 1024
MAX_BYTES = 32 * MEBIBYTE  # the largest that a known sender sends has 25
MAX_TOLERANCE = timedelta(days=7)
MAX_SCHEMAS, MAX_SCHEMA_CHARACTERS = 200, 64 * 1024
# A key that can be guessed proves nothing. 16 characters: the shortest that services give out.
MIN_SECRET, MAX_SECRET = 16, 500
# Some while one replaces another; each is tried with every request whose signature is bad.
MAX_IN_FORCE = 5

Problems = dict[str, list[str]]

NOT_OFFERED = {
    "path": "A secret in the address is not offered: addresses end up in the logs of every machine "
    "on the way. Use a bearer token, or a scheme that signs.",
}


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a source is set up with, as it is stored."""

    scheme: str
    settings: Any
    tolerance: timedelta
    id_path: str
    type_path: str
    correlation_path: str
    schemas: Any
    max_bytes: int
    content_types: Any
    encodings: Any


def problems_of(source: Configuration) -> Problems:
    """What cannot work, by field, in sentences; empty when all of it can."""
    found: Problems = {}
    if source.scheme in NOT_OFFERED:
        return {"scheme": [NOT_OFFERED[source.scheme]]}
    try:
        scheme = Scheme(source.scheme)
    except ValueError:
        return {"scheme": [f"There is no scheme {source.scheme!r}."]}
    for field, problem in (
        *storage_problems(source),
        *setting_problems(scheme, source.settings),
        *limit_problems(source),
        *path_problems(source),
        *place_problems(scheme, source),
        *schema_problems(source.schemas),
        *list_problems(scheme, source),
    ):
        found.setdefault(field, []).append(problem)
    return found


def storage_problems(source: Configuration) -> Iterator[tuple[str, str]]:
    for field in ("settings", "schemas", "content_types", "encodings"):
        if not can_be_kept(getattr(source, field)):
            yield field, "It holds NUL, half a surrogate pair, NaN or Infinity: none can be stored."


def can_be_kept(part: Any) -> bool:
    """Whether `jsonb` keeps it."""
    match part:
        case str():
            return is_storable(part, len(part))
        case float():
            return math.isfinite(part)
        case dict():
            return all(can_be_kept(name) and can_be_kept(value) for name, value in part.items())
        case list():
            return all(map(can_be_kept, part))
        case _:
            return True


def setting_problems(scheme: Scheme, given: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(given, dict):
        yield "settings", "This has to be an object, such as {}."
        return
    try:
        settings = settings_of(scheme, given)
    except ValidationError as error:
        for each in error.errors():
            where = ".".join(map(str, each["loc"])) or scheme.label
            yield "settings", f"{where}: {each['msg']}."
        return
    if isinstance(settings, SnsSettings):
        for number, pem in enumerate(settings.certificates, start=1):
            try:
                sns.read_certificate(pem)
            except ValueError:
                yield "settings", f"certificates: number {number} is no certificate in PEM text."


def limit_problems(source: Configuration) -> Iterator[tuple[str, str]]:
    if not 1 <= source.max_bytes <= MAX_BYTES:
        yield "max_bytes", f"Between 1 and {MAX_BYTES:,} bytes."
    if not timedelta(0) < source.tolerance <= MAX_TOLERANCE:
        yield "tolerance", "More than nothing, and a week at most: a request that was once signed "
        "counts for as long."


# --- places -----------------------------------------------------------------------------------


def path_problems(source: Configuration) -> Iterator[tuple[str, str]]:
    for field in ("id_path", "type_path", "correlation_path"):
        path = getattr(source, field)
        if path and (problem := path_problem(path)):
            yield field, problem


def path_problem(path: str) -> str:
    try:
        jmespath.compile(path)
    except (JMESPathError, ValueError, RecursionError) as error:
        return f"This is no JMESPath: {str(error).splitlines()[0]}"
    return ""


def place_problems(scheme: Scheme, source: Configuration) -> Iterator[tuple[str, str]]:
    """Where neither the source nor its scheme says where to look."""
    habits = HABITS[scheme]
    given = source.settings if isinstance(source.settings, dict) else {}
    if not (source.id_path or given.get("id_header") or habits.id_path or habits.id_header):
        yield (
            "id_path",
            (
                "Say where the event's ID stands: without it a second delivery of the same event "
                "cannot be told from another event."
            ),
        )
    if not (source.type_path or given.get("type_header") or habits.type_path or habits.type_header):
        yield "type_path", "Say where the event's type stands: waits name the types they take."
    if not (source.correlation_path or habits.correlation_path):
        yield "correlation_path", "Say where it stands which run an event is for, such as "
        "data.order. Alternatives: data.order || data.reference."


# --- schemas ----------------------------------------------------------------------------------


def schema_problems(schemas: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(schemas, dict):
        yield "schemas", 'Give an object, by type: {"order.paid": {"type": "object"}}.'
        return
    if len(schemas) > MAX_SCHEMAS:
        yield "schemas", f"{MAX_SCHEMAS} types at most."
    for its_type, schema in schemas.items():
        if not its_type or not is_storable(its_type, MAX_TYPE):
            yield "schemas", f"A type is text of {MAX_TYPE} characters at most."
        elif problem := schema_problem(schema):
            yield "schemas", f"{its_type}: {problem}"


def schema_problem(schema: Any) -> str:
    if not isinstance(schema, dict):
        return "a JSON Schema is an object."
    if len(json.dumps(schema)) > MAX_SCHEMA_CHARACTERS:
        return f"a schema has {MAX_SCHEMA_CHARACTERS:,} characters at most."
    if not isinstance(schema.get("$schema", ""), str):
        return "its $schema is no text."
    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        return f"this is no JSON Schema: at {error.json_path}, {error.message[:200]}."
    except RecursionError:
        return "it is nested too deeply."
    return reference_problem(schema)


def reference_problem(schema: dict[str, Any]) -> str:
    """References lead to parts of the schema itself: nothing is fetched for a delivery."""
    root = DRAFT202012.create_resource(schema)
    resolver = Registry().with_resource(uri="", resource=root).resolver()
    for reference in references(schema):
        if not reference.startswith("#"):
            return (
                f"it refers to {reference[:100]}, and may only refer to its own parts (#/$defs/…)."
            )
        try:
            resolver.lookup(reference)
        except Unresolvable:
            return f"it refers to {reference[:100]}, which is not in it."
    return ""


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        for name, value in part.items():
            if name in ("$ref", "$dynamicRef") and isinstance(value, str):
                yield value
            else:
                yield from references(value)
    elif isinstance(part, list):
        for value in part:
            yield from references(value)


# --- lists ------------------------------------------------------------------------------------


def list_problems(scheme: Scheme, source: Configuration) -> Iterator[tuple[str, str]]:
    types, encodings = source.content_types, source.encodings
    if not is_list_of_text(types) or not types:
        yield "content_types", 'Give a list, such as ["application/json"].'
    elif any(each != essence(each) or "/" not in each for each in types):
        yield (
            "content_types",
            "Each in lower case and without parameters, such as application/json.",
        )
    elif missing := [each for each in HABITS[scheme].content_types if each not in types]:
        yield "content_types", f"{scheme.label} sends {missing[0]}."
    if not is_list_of_text(encodings) or not set(encodings) <= set(ENCODINGS):
        yield "encodings", f"A list of some of these, or of none: {', '.join(sorted(ENCODINGS))}."


def is_list_of_text(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(each, str) for each in given)


def essence(content_type: str) -> str:
    """A content type without its parameters: what a charset says does not matter for bytes."""
    return content_type.partition(";")[0].strip().lower()


# --- secrets ----------------------------------------------------------------------------------


def secret_problem(scheme: Scheme, value: str) -> str:
    """Why `value` cannot be a secret of this scheme; empty when it can. Never says the value."""
    if scheme is Scheme.AWS_SNS:
        return "AWS SNS signs by certificate and has no secret: name the topics in the settings."
    if not value.isascii() or not value.isprintable() or value != value.strip():
        return "A secret is printable ASCII, without space at its ends."
    if not MIN_SECRET <= len(value) <= MAX_SECRET:
        return f"A secret has between {MIN_SECRET} and {MAX_SECRET} characters."
    if scheme is Scheme.STANDARD_WEBHOOKS:
        key = standard_key(value)
        if key is None:
            return "A secret of Standard Webhooks is base64, most often after whsec_."
        if len(key) < MIN_SECRET:
            return f"A secret of Standard Webhooks has {MIN_SECRET} bytes at least."
    return ""
