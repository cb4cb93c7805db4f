"""Typed values as JSON that PostgreSQL keeps exactly: what it cannot keep is refused, by path."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any, Literal, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel, Field, SecretStr, field_validator
from typing_extensions import TypedDict

from workflows.core.errors import InvalidInput, UnstorableValue
from workflows.core.values import MAX_SAFE_INTEGER, from_json, to_json

WHAT = "output of step load"


class Colour(StrEnum):
    RED = "red"


class Size(Enum):
    SMALL = 1


class Line(BaseModel):
    article: str
    price: Decimal
    colours: set[Colour] = set()


class Order(BaseModel):
    number: str = Field(pattern=r"^ORD-[0-9]+$")
    placed_at: datetime
    lines: list[Line]


@dataclass(frozen=True)
class Money:
    amount: Decimal
    currency: Literal["USD", "EUR"]


class Address(TypedDict):
    street: str
    since: date


class Point(NamedTuple):
    x: int
    y: float


def stored(value: Any, annotation: Any = Any, limit: int = 100_000) -> Any:
    return to_json(value, annotation, limit=limit, what=WHAT)


ORDER = Order(
    number="ORD-7001",
    placed_at=datetime(2026, 3, 10, 3, 0, 0, 250, tzinfo=UTC),
    lines=[Line(article="a", price=Decimal("0.10"), colours={Colour.RED})],
)


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (Decimal("125.00"), Decimal),
        (Decimal("12345678901234567890.123456789"), Decimal),
        (datetime(2026, 3, 10, 3, 0, 0, 1, tzinfo=UTC), datetime),
        (datetime(2026, 3, 10, 3, 0, tzinfo=timezone(timedelta(hours=5, minutes=30))), datetime),
        (datetime(2026, 3, 10, 3, 0), datetime),  # noqa: DTZ001 (naive in, naive out)
        (date(2026, 2, 28), date),
        (timedelta(days=-1, microseconds=1), timedelta),
        (UUID("018f0000-0000-7000-8000-000000000001"), UUID),
        (Colour.RED, Colour),
        (Size.SMALL, Size),
        (Money(Decimal("125.00"), "USD"), Money),
        (Address(street="Kölner Straße 1", since=date(2020, 1, 1)), Address),
        (Point(1, 0.1), Point),
        (ORDER, Order),
        ([ORDER, ORDER], list[Order]),
        ({"a": Decimal("1.10")}, dict[str, Decimal]),
        ({1: "one"}, dict[int, str]),
        ({3, 1, 2}, set[int]),
        ((1, "a"), tuple[int, str]),
        (None, Order | None),
        (2.5e-8, float),
        (0.0, float),
        (True, bool),
        (MAX_SAFE_INTEGER, int),
        (-MAX_SAFE_INTEGER, int),
        ("emoji \U0001f600, accents éü, \u2028, quotes \"'", str),
        ({"nested": [{"deep": [1, 2.5, None, True, "x"]}]}, Any),
        ({}, dict[str, Any]),
        ("", str),
    ],
)
def test_a_typed_value_comes_back_as_it_was(value: Any, annotation: Any) -> None:
    text = json.dumps(stored(value, annotation))
    back = from_json(json.loads(text), annotation, what=WHAT)
    assert (back, type(back)) == (value, type(value))


def nested(part: Any) -> dict[str, Any]:
    return {"lines": [{"a": 1}, {"price": part}]}


PATH = r"\$\.lines\[1\]\.price"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (nested("a\x00b"), rf"at {PATH}: text with a NUL character"),
        (nested("\ud800"), rf"at {PATH}: text with half of a surrogate pair"),
        (nested({"a\x00": 1}), rf"at {PATH}\.'a\\x00': text with a NUL character"),
        (nested(2**53 + 1), rf"at {PATH}: 9007199254740993 is beyond 2\^53"),
        (nested(-(2**53) - 1), rf"at {PATH}: -9007199254740993 is beyond 2\^53"),
        (nested(-0.0), rf"at {PATH}: -0\.0 would lose its sign; return 0\.0"),
        ("\udfff", r"at \$: text with half of a surrogate pair"),
        (object(), r"at \$: object has no JSON form"),
        (print, r"at \$: builtin_function_or_method has no JSON form"),
        (ValueError("no"), r"at \$: ValueError has no JSON form"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_path(value: Any, says: str) -> None:
    with pytest.raises(UnstorableValue, match=f"^{WHAT}: {says}"):
        stored(value)


class Reading(BaseModel):
    values: list[float]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_does_not_have_is_refused_with_its_path(number: float) -> None:
    with pytest.raises(UnstorableValue, match=rf"at \$\.values\[1\]: {number} has no JSON form"):
        stored(Reading(values=[1.0, number]), Reading)


def silently(value: Any) -> Any:
    return pytest.param(
        value,
    )


@pytest.mark.parametrize(
    "part",
    [
        silently(float("nan")),  # becomes null
        silently(float("inf")),
        silently({1, 2}),  # becomes a list, in any order
        silently(b"ab"),  # becomes text
        silently(Decimal("1.10")),
        silently(datetime(2026, 3, 10, tzinfo=UTC)),
        silently(1 + 2j),
        silently({1: "a", "1": "b"}),  # one of the two is lost
        pytest.param(object()),
        pytest.param(b"\xff"),
        pytest.param(
            {"\ud800": 1},
        ),
    ],
)
def test_without_a_type_only_what_json_has_is_taken(part: Any) -> None:
    with pytest.raises(UnstorableValue, match=PATH):
        stored(nested(part))


class Parcel(BaseModel):
    content: Any


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (Parcel(content=float("nan")), Parcel),
        (Parcel(content={1, 2}), Parcel),
        ({"a": [float("inf")]}, dict[str, list[Any]]),
        ({"a": Decimal("1.10")}, dict[str, object]),
        ([{"a": b"ab"}], list[dict[str, Any]]),
    ],
)
def test_a_part_without_a_type_is_not_changed_either(value: Any, annotation: Any) -> None:
    with pytest.raises(UnstorableValue):
        stored(value, annotation)


def test_a_number_of_more_digits_than_python_prints_is_refused() -> None:
    with pytest.raises(UnstorableValue, match=r"beyond 2\^53"):
        stored(10**5000)


class Raising(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def look_it_up(cls, value: int) -> int:
        raise KeyError(value)


class Plain:
    """No schema can be made for it."""


@pytest.mark.parametrize(("value", "annotation"), [({"number": 1}, Raising), (Plain(), Plain)])
def test_whatever_goes_wrong_while_storing_is_one_error(value: Any, annotation: Any) -> None:
    with pytest.raises(UnstorableValue):
        stored(value, annotation)


def test_a_value_inside_itself_is_refused() -> None:
    circle: dict[str, Any] = {}
    circle["self"] = circle
    with pytest.raises(UnstorableValue, match="holds itself"):
        stored(circle)


@pytest.mark.parametrize("storeys", [400, 10_000])  # what pydantic refuses, and Python itself
def test_a_value_nested_beyond_reason_is_refused(storeys: int) -> None:
    tower: list[Any] = []
    for _ in range(storeys):
        tower = [tower]
    with pytest.raises(UnstorableValue, match="nested too deeply"):
        stored(tower)


@pytest.mark.parametrize(
    ("value", "annotation", "says"),
    [
        ({"number": "7001", "placed_at": "2026-03-10", "lines": []}, Order, "at number: "),
        (
            {"number": "ORD-1", "placed_at": "2026-03-10", "lines": [{"article": "a"}]},
            Order,
            r"at lines\.0\.price: Field required",
        ),
        ("x", int, "at the value itself: "),
        ({"number": 1, "placed_at": 2, "lines": 3}, Order, r"\(and \d+ more\)"),
        (Decimal("NaN"), Decimal, "at the value itself: "),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_path(
    value: Any, annotation: Any, says: str
) -> None:
    with pytest.raises(UnstorableValue, match=says):
        stored(value, annotation)


def test_a_refusal_of_another_type_does_not_tell_the_value() -> None:
    with pytest.raises(UnstorableValue) as refused:
        stored({"number": "4111 1111 1111 1111", "placed_at": "x", "lines": []}, Order)
    assert "4111" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "fits"), [("x" * 98, True), ("x" * 99, False), ("ü" * 49, True), ("ü" * 50, False)]
)
def test_the_limit_is_the_bytes_of_the_json_text(text: str, fits: bool) -> None:
    # two quotation marks and 98 more are 100
    if fits:
        assert stored(text, str, limit=100) == text
        return
    with pytest.raises(UnstorableValue, match=r"bytes, and the limit is 100"):
        stored(text, str, limit=100)


@dataclass
class Accepted:
    why: str


@dataclass
class Denied:
    why: str


class Allowed(BaseModel):
    answer: Literal["allowed"] = "allowed"
    at: datetime
    seen: int = Field(default=0, exclude=True)


class Refused(BaseModel):
    answer: Literal["refused"] = "refused"
    at: datetime


class Labelled(BaseModel, extra="allow"):
    name: str


AT = datetime(2026, 3, 10, tzinfo=UTC)
OFF_BY_SECONDS = timezone(timedelta(minutes=53, seconds=28))


@pytest.mark.parametrize(
    ("value", "annotation", "path"),
    [
        (Denied("too late"), Accepted | Denied, "$"),
        ([Accepted("fine"), Denied("too late")], list[Accepted | Denied], "$[1]"),
        ({"price": Decimal("1.50")}, dict[str, str | Decimal], "$.price"),
        (Size.SMALL, int | Size, "$"),
        (
            Order(number="ORD-1", placed_at=AT.replace(tzinfo=OFF_BY_SECONDS), lines=[]),
            Order,
            "$.placed_at",
        ),
        (SecretStr("4000 0000"), SecretStr, "$"),
        (Labelled(name="a", price=Decimal("1.50")), Labelled, "$.price"),
    ],
    ids=["alike", "in a list", "text or number", "member or value", "seconds", "stars", "unnamed"],
)
def test_what_would_come_back_as_something_else_is_refused(
    value: Any, annotation: Any, path: str
) -> None:
    said = f"{WHAT}: at {path}: it would come back as something else"
    with pytest.raises(UnstorableValue, match=re.escape(said)):
        stored(value, annotation)


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (Refused(at=AT), Allowed | Refused),
        (7, int | str),
        ("7", int | str),
        (None, Decimal | str | None),
        (Labelled(name="a", places=[1, 2]), Labelled),
        # Twice there, by a clock that is put back.
        (datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")), datetime),
        (datetime(2026, 3, 10, 12), datetime),  # noqa: DTZ001 (it is meant)
    ],
    ids=["told apart", "number", "text", "nothing", "unnamed", "twice", "no zone"],
)
def test_what_comes_back_as_it_was_is_kept(value: Any, annotation: Any) -> None:
    back = from_json(stored(value, annotation), annotation, what=WHAT)
    assert type(back) is type(value)
    if isinstance(value, datetime):
        assert back - value == timedelta(0)
    else:
        assert back == value


# --- more than was declared -------------------------------------------------------------------


class Card(BaseModel, frozen=True):
    last_four: str


class DebitCard(Card, frozen=True):
    pin_was_asked: bool


class Nothing(BaseModel):
    """Says by its class alone what it is."""


class Something(Nothing):
    more: int


@dataclass
class Answered(Accepted):
    by: str


class Wallet(BaseModel):
    name: str
    cards: dict[str, list[Card]]


CARD, DEBIT = Card(last_four="4242"), DebitCard(last_four="4242", pin_was_asked=True)


@pytest.mark.parametrize(
    ("value", "annotation", "path"),
    [
        (DEBIT, Card, "$"),
        (Something(more=1), Nothing, "$"),
        (Answered("fine", "ada"), Accepted, "$"),
        ([CARD, DEBIT], list[Card], "$[1]"),
        ((1, DEBIT), tuple[int, Card], "$[1]"),
        ({CARD, DEBIT}, set[Card], "$[]"),
        (Wallet(name="a", cards={"mine": [CARD, DEBIT]}), Wallet, "$.cards.mine[1]"),
        ({"a": DEBIT}, dict[str, Card | None], "$.a"),
    ],
)
def test_what_a_subclass_adds_is_not_left_out_silently(
    value: Any, annotation: Any, path: str
) -> None:
    with pytest.raises(UnstorableValue, match=f"^{WHAT}: at {re.escape(path)}: .* would come back"):
        stored(value, annotation)


def test_it_is_said_which_class_to_declare() -> None:
    said = "DebitCard would come back as Card, without what it adds; declare DebitCard"
    with pytest.raises(UnstorableValue, match=said):
        stored([DEBIT], list[Card])
    assert stored([DEBIT], list[DebitCard]) == [{"last_four": "4242", "pin_was_asked": True}]


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (CARD, Card),
        (Nothing(), Nothing),
        ({CARD}, frozenset[Card]),
        (Wallet(name="a", cards={"mine": [CARD], "lent": []}), Wallet),
        ({"a": None, "b": CARD}, dict[str, Card | None]),
    ],
)
def test_that_a_class_has_subclasses_changes_nothing_for_what_is_of_itself(
    value: Any, annotation: Any
) -> None:
    assert from_json(stored(value, annotation), annotation, what=WHAT) == value


def test_a_field_that_its_author_leaves_out_is_not_missed() -> None:
    assert stored(Allowed(at=AT, seen=3), Allowed) == {
        "answer": "allowed",
        "at": "2026-03-10T00:00:00Z",
    }


@pytest.mark.parametrize(
    ("value", "annotation", "says"),
    [
        ({"number": "ORD-1"}, Order, "at placed_at: Field required"),
        ("125,00", Decimal, "at the value itself: "),
        ("blue", Colour, "at the value itself: "),
    ],
)
def test_what_was_stored_under_another_type_is_refused_when_it_is_read(
    value: Any, annotation: Any, says: str
) -> None:
    with pytest.raises(InvalidInput, match=f"^{WHAT}: {says}"):
        from_json(value, annotation, what=WHAT)


@pytest.mark.parametrize(
    "act",
    [
        lambda: stored(["a"] * 3, list[str], limit=1),
        lambda: stored("\x00", str),
        lambda: from_json(1, Order, what=WHAT),
    ],
)
def test_every_refusal_says_what_it_is_about(act: Callable[[], Any]) -> None:
    with pytest.raises((UnstorableValue, InvalidInput), match=f"^{WHAT}: "):
        act()
