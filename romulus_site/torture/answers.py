"""What the steps of the tortured workflows give, from their input and visit alone. Pure.

The steps call these, and so does the check that recomputes what they left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workflows.core.steps import END

Input = dict[str, Any]


@dataclass(frozen=True)
class Note:
    """What a step leaves that also left lines in the journal."""

    attempt: str
    value: int


@dataclass(frozen=True)
class Receipt:
    """What is left after a write: whose attempt it was, and the resource that was made."""

    attempt: str
    resource: str


@dataclass(frozen=True)
class Reply:
    """What is left after a wait: whose attempt it was, and the event, where one came in time."""

    attempt: str
    event_id: str
    value: int


def begin(input: Input) -> int:
    return int(input["n"]) * 7 + 1


def note(input: Input, visit: int) -> int:
    return int(input["n"]) * 100 + visit


def book(input: Input, visit: int) -> int:
    return int(input["n"]) + 1000 * visit


def again(input: Input, visit: int) -> str:
    return "note" if visit < input["rounds"] else "rest"


def fill(input: Input) -> str:
    """A text that goes into the row, or into the storage when it is long."""
    return f"{input['n']}-" * int(input["size"])


def whisper(input: Input) -> str:
    return f"between us: {input['n']}"


def add_up(input: Input) -> int:
    rounds = input["rounds"]
    parts = [begin(input), note(input, rounds), book(input, rounds), len(fill(input))]
    return sum(parts) + len(whisper(input))


def fall(input: Input) -> int:
    return int(input["n"]) * 3


def leaves(input: Input, *, broken: bool) -> list[Input]:
    """The inputs of the runs that a step starts; the second is to fail where one is."""
    return [
        {
            "n": input["n"] * 10 + place,
            "seconds": input["seconds"],
            "nap": round(input["nap"] * (1 + place) / 2, 3),
            "broken": broken and place == 1,
        }
        for place in range(input["leaves"])
    ]


def bill(input: Input) -> int:
    return int(input["n"]) + 11


def thing(input: Input, visit: int) -> str:
    """The name under which a write's faults are armed: one for each operation."""
    return f"{input['thing']}-{visit}"


def more(input: Input, visit: int) -> str:
    return "refund" if visit < input["rounds"] else END


def payload(number: int) -> Input:
    """What the event for the run of that number brings."""
    return {"n": number, "value": number * 13}


def event_body(number: int, event_id: str, type: str, correlation: str) -> Input:
    """The same as its sender sends it."""
    return {"id": event_id, "type": type, "correlation": correlation} | payload(number)
