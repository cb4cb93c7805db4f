"""Typed values as JSON that PostgreSQL keeps exactly, and back.

An annotation (pydantic model, dataclass, TypedDict, Decimal, datetime, UUID, …) is validated on
the way in and on the way out. What JSON or `jsonb` cannot keep exactly is refused with the path
of the offending part, never changed silently.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from workflows.core.errors import InvalidInput, UnstorableValue

Json = Any  # None, bool, int, float, str, list or dict of the same: what json.loads gives

# Whole numbers beyond this change when a JavaScript reader or a float touches them.
MAX_SAFE_INTEGER = 2**53 - 1
PRINTED_BITS = 256  # longer numbers say nothing, and Python refuses to print very long ones
PARTLESS = (str, int, float, bool, type(None), Decimal)
TOO_DEEP = "Maximum serialization depth exceeded"  # as pydantic says it, long before Python does
# What says nothing about its parts.
UNTYPED = (Any, dict, list, dict[str, Any], list[Any])
# Parts, as pydantic names them, whose JSON may not lead back: what has no type or one of several, a
# time whose zone is off by seconds, what prints as stars, fields that a model does not name.
MAY_CHANGE = (
    *("'type': 'any'", "'type': 'union'", "'type': 'datetime'", "'type': 'time'"),
    *("Secret", "behavior': 'allow'"),
)


@lru_cache(maxsize=512)
def adapter(annotation: Any) -> TypeAdapter[Any]:
    return TypeAdapter(annotation)


def to_json(value: Any, annotation: Any, *, limit: int, what: str) -> Json:
    """Return `value` as storable JSON.

    Args:
        value: what the author's code gave.
        annotation: its declared type; `Any` takes what JSON can hold.
        limit: the largest size in bytes of the JSON text.
        what: the name used in messages, such as "output of step load_order".

    Raises:
        UnstorableValue: names the path in the value and what to do.
    """
    try:
        form = form_of(annotation)
        if form.untyped:
            ensure_plain(value, what)
        checked = form.validate(value)
        plain = form.dump(checked, mode="json", warnings="error")
        if form.may_change:
            ensure_unchanged(adapter(annotation), checked, plain, what)
        elif form.classes and any(each.__subclasses__() for each in form.classes):
            ensure_not_narrowed(adapter(annotation), checked, plain, what)
        ensure_storable(plain, what)
        ensure_size(plain, limit, what)
    except ValidationError as error:
        raise UnstorableValue(f"{what}: {first_problem(error)}") from error
    except UnstorableValue:
        raise
    except Exception as error:  # whatever a type of the author's own does here is one error
        if isinstance(error, RecursionError) or TOO_DEEP in error.args:
            problem = "it is nested too deeply, or holds itself"
            raise UnstorableValue(f"{what}: {problem}") from error
        raise UnstorableValue(
            f"{what}: {type(value).__name__} has no JSON form; return a model, dataclass or dict"
        ) from error
    return plain


def ensure_plain(value: Any, what: str, path: str = "$") -> None:
    """Raise `UnstorableValue` for a part that JSON does not have: without a type nothing is
    turned into something else silently."""
    ensure_json(value, what, path)
    ensure_storable(value, what, path)


def ensure_json(value: Any, what: str, path: str) -> None:
    match value:
        case None | bool() | str() | int() | float():
            pass
        case dict():
            for key, part in value.items():
                if not isinstance(key, str):
                    raise UnstorableValue(f"{what}: at {path}: the name {key!r} is no text")
                ensure_json(part, what, f"{path}.{printed(key)}")
        case list():
            for index, part in enumerate(value):
                ensure_json(part, what, f"{path}[{index}]")
        case _:
            raise UnstorableValue(
                f"{what}: at {path}: {type(value).__name__} has no JSON form; declare its type"
            )


@dataclass(frozen=True, slots=True)
class Form:
    """What a step needs of its annotation each time, worked out once. The two calls are pydantic's
    own, without what `TypeAdapter` does around them."""

    validate: Callable[[Any], Any]
    dump: Callable[..., Json]
    untyped: bool
    may_change: bool
    classes: tuple[type[Any], ...]  # models and dataclasses; of theirs alone the fields are kept


@lru_cache(maxsize=512)
def form_of(annotation: Any) -> Form:
    kind = adapter(annotation)
    return Form(
        validate=kind.validator.validate_python,
        dump=kind.serializer.to_python,
        untyped=annotation in UNTYPED,
        may_change=any(part in repr(kind.core_schema) for part in MAY_CHANGE),
        classes=tuple(set(classes_in(kind.core_schema))),
    )


def classes_in(schema: Any) -> Iterator[type[Any]]:
    """The models and dataclasses that pydantic's `schema` names."""
    if isinstance(schema, dict):
        if schema.get("type") in ("model", "dataclass"):
            yield schema["cls"]
        for name, part in schema.items():
            if name != "metadata":  # what is no schema, such as functions
                yield from classes_in(part)
    elif isinstance(schema, list | tuple):
        for part in schema:
            yield from classes_in(part)


def ensure_unchanged(kind: TypeAdapter[Any], value: Any, plain: Json, what: str) -> None:
    """Raise `UnstorableValue` when a part would come back as something else."""
    path = first_change(value, kind.validate_json(json.dumps(plain)), "$")
    if path:
        raise UnstorableValue(
            f"{what}: at {path}: it would come back as something else; declare its type, and where "
            "there are several let a Literal field say which"
        )


def first_change(value: Any, back: Any, path: str) -> str:
    """Return the path of the first part that differs; empty when none does."""
    if type(value) is not type(back):
        return path
    parts = paired(value, back, path)
    if parts is not None:
        return next((found for at, one, two in parts if (found := first_change(one, two, at))), "")
    if isinstance(value, datetime):
        return "" if is_same_moment(value, back) else path
    return "" if value == back else path


def ensure_not_narrowed(kind: TypeAdapter[Any], value: Any, plain: Json, what: str) -> None:
    """Raise `UnstorableValue` when a part would come back as the class that it was made from:
    what a subclass adds is not in the JSON of the class that is declared."""
    narrowed = first_narrowed(value, kind.validate_json(json.dumps(plain)), "$")
    if narrowed:
        path, given, declared = narrowed
        raise UnstorableValue(
            f"{what}: at {path}: {given.__name__} would come back as {declared.__name__}, without "
            f"what it adds; declare {given.__name__}, and where there are several a union in which "
            "a Literal field says which"
        )


def first_narrowed(value: Any, back: Any, path: str) -> tuple[str, type[Any], type[Any]] | None:
    """Return the path of the first part that comes back as another class, with both classes."""
    if type(value) is not type(back) and is_typed(back):
        return path, type(value), type(back)
    if type(value) in PARTLESS:
        return None
    parts = paired(value, back, path) or ()
    return next((found for at, one, two in parts if (found := first_narrowed(one, two, at))), None)


Pairs = Iterable[tuple[str, Any, Any]]


def paired(value: Any, back: Any, path: str) -> Pairs | None:
    """The parts of two values of one shape, each with its path; None: they have none, or differ in
    shape."""
    if is_typed(back):
        kind: Any = type(back)
        names = (*fields_of(kind), *(getattr(back, "model_extra", None) or ()))
        return ((f"{path}.{name}", getattr(value, name), getattr(back, name)) for name in names)
    match value:
        case str() | bytes():
            return None
        case Mapping() if isinstance(back, Mapping) and value.keys() == back.keys():
            return ((f"{path}.{key}", value[key], back[key]) for key in value)
        case Sequence() if isinstance(back, Sequence) and len(value) == len(back):
            both = zip(value, back, strict=True)
            return ((f"{path}[{n}]", one, two) for n, (one, two) in enumerate(both))
        case Set() if isinstance(back, Set) and back:
            # What is not among what comes back is another than any of that.
            return ((f"{path}[]", one, next(iter(back))) for one in value if one not in back)
        case _:
            return None


def is_same_moment(one: datetime, two: datetime) -> bool:
    """Not `==`, to which a time that a clock shows twice is like none in another zone."""
    return (one.tzinfo is None) == (two.tzinfo is None) and not one - two


def is_typed(value: Any) -> bool:
    return is_dataclass(value) or isinstance(value, BaseModel)


@lru_cache(maxsize=512)
def fields_of(kind: Any) -> list[str]:
    """The fields of a model or dataclass that its author wants to keep."""
    if is_dataclass(kind):
        return [field.name for field in fields(kind) if field.compare]
    if issubclass(kind, BaseModel):
        return [name for name, field in kind.model_fields.items() if not field.exclude]
    return []


def from_json(value: Json, annotation: Any, *, what: str) -> Any:
    """Return stored JSON as its declared type.

    Raises:
        InvalidInput: the stored value does not fit the annotation; names the path.
    """
    try:
        # JSON mode, so that what was stored as text comes back as Decimal, datetime or UUID.
        return adapter(annotation).validate_json(json.dumps(restored(value)))
    except ValidationError as error:
        raise InvalidInput(f"{what}: {first_problem(error)}") from error


def restored(value: Json) -> Json:
    """Undo what `jsonb` does to large numbers: it writes them without their exponent, so that they
    come back as whole numbers beyond what `ensure_storable` lets in."""
    match value:
        case int() if abs(value) > MAX_SAFE_INTEGER:
            return float(value)
        case dict():
            return {key: restored(part) for key, part in value.items()}
        case list():
            return [restored(part) for part in value]
        case _:
            return value


def first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_input=False)[0]
    path = ".".join(str(part) for part in problem["loc"]) or "the value itself"
    more = error.error_count() - 1
    return f"at {path}: {problem['msg']}" + (f" (and {more} more)" if more else "")


def ensure_storable(value: Json, what: str, path: str = "$") -> None:
    """Raise `UnstorableValue` when `jsonb` would refuse or change a part of `value`."""
    match value:
        case str():
            ensure_text(value, what, path)
        case bool() | None:
            pass
        case int() if abs(value) > MAX_SAFE_INTEGER:
            shown = value if value.bit_length() <= PRINTED_BITS else "this number"
            raise UnstorableValue(
                f"{what}: at {path}: {shown} is beyond 2^53; return it as text or Decimal"
            )
        case float() if not value or not math.isfinite(value):
            ensure_number(value, what, path)
        case dict():
            for key, part in value.items():
                ensure_text(key, what, f"{path}.{printed(key)}")
                ensure_storable(part, what, f"{path}.{printed(key)}")
        case list():
            for index, part in enumerate(value):
                ensure_storable(part, what, f"{path}[{index}]")


def ensure_number(number: float, what: str, path: str) -> None:
    if not math.isfinite(number):
        raise UnstorableValue(f"{what}: at {path}: {number} has no JSON form")
    if not number and math.copysign(1, number) < 0:
        raise UnstorableValue(
            f"{what}: at {path}: -0.0 would lose its sign; return 0.0, which -0.0 + 0.0 gives"
        )


def ensure_text(text: str, what: str, path: str) -> None:
    if "\x00" in text:
        raise UnstorableValue(f"{what}: at {path}: text with a NUL character cannot be stored")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UnstorableValue(
            f"{what}: at {path}: text with half of a surrogate pair cannot be stored"
        ) from error


def printed(key: str) -> str:
    return key if key.isprintable() else repr(key)


def ensure_size(value: Json, limit: int, what: str) -> None:
    if value is None or isinstance(value, int | float):
        return
    size = len(json.dumps(value, ensure_ascii=False).encode())
    if size > limit:
        raise UnstorableValue(f"{what}: {size:,} bytes, and the limit is {limit:,}")
