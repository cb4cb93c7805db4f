"""Events that a wait would have taken but for one thing: told to people, never acted on.

Two texts count as close when they differ in case, in white space, by something put before or
behind one of them, or by one character. Who looks for candidates is a selector; what it looks
among is bounded there.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Literal
from uuid import UUID

# A shorter text begins or ends too many others, and is one character away from too many, to tell
# anything.
LEAST = 3


class Nearness(StrEnum):
    """In what an event differs from what is waited for, the closest first."""

    REJECTED = "rejected"  # it fits, but not the shape that its source declares
    CASE = "case"
    SPACE = "space"
    TYPE = "type"  # the same correlation, another type
    PREFIX = "prefix"
    CHARACTER = "character"

    @property
    def sentence(self) -> str:
        return SENTENCES[self]


SENTENCES = {
    Nearness.REJECTED: "It fits, but it was rejected.",
    Nearness.CASE: "Only upper and lower case differ.",
    Nearness.SPACE: "Only white space differs.",
    Nearness.TYPE: "The correlation is the same, the type is another.",
    Nearness.PREFIX: "One correlation is the other with something more at its start or end.",
    Nearness.CHARACTER: "Only one character differs.",
}
CLOSENESS = {nearness: place for place, nearness in enumerate(Nearness)}


@dataclass(frozen=True, slots=True)
class Expected:
    """What a wait may take."""

    types: tuple[str, ...]
    correlation: str


@dataclass(frozen=True, slots=True)
class Said:
    """What an event says of itself."""

    id: UUID
    type: str
    correlation: str
    received_at: datetime
    event_id: str = ""
    source: str = ""
    rejected: bool = False


@dataclass(frozen=True, slots=True)
class NearMiss:
    nearness: Nearness
    event: Said


def fits(expected: Expected, said: Said) -> bool:
    """Whether type and correlation are as the wait wants them: exact text, nothing folded."""
    return said.type in expected.types and said.correlation == expected.correlation


def nearness(expected: Expected, said: Said) -> Nearness | None:
    """In what `said` misses what is expected; None when it fits, or is not close."""
    if fits(expected, said):
        return Nearness.REJECTED if said.rejected else None
    if said.correlation == expected.correlation:
        # Nothing in common is no correlation in common.
        return Nearness.TYPE if said.correlation else None
    if said.type not in expected.types:
        return None
    return difference(expected.correlation, said.correlation)


def near_misses(expected: Expected, events: Iterable[Said], most: int) -> tuple[NearMiss, ...]:
    """Those of `events` that came close, the closest and newest first, `most` at most."""
    found = [
        NearMiss(near, event) for event in events if (near := nearness(expected, event)) is not None
    ]
    found.sort(key=lambda miss: miss.event.received_at, reverse=True)
    found.sort(key=lambda miss: CLOSENESS[miss.nearness])
    return tuple(found[:most])


def difference(wanted: str, said: str) -> Nearness | None:
    """In what two unequal texts differ, if it is one of the things that people get wrong."""
    if wanted.casefold() == said.casefold():
        return Nearness.CASE
    if unspaced(wanted).casefold() == unspaced(said).casefold():
        return Nearness.SPACE
    shorter, longer = sorted((wanted, said), key=len)
    if len(shorter) < LEAST:
        return None
    if longer.startswith(shorter) or longer.endswith(shorter):
        return Nearness.PREFIX
    return Nearness.CHARACTER if is_one_edit(shorter, longer) else None


def unspaced(text: str) -> str:
    """`text` without white space and without characters that are not seen."""
    return "".join(
        each for each in text if not each.isspace() and unicodedata.category(each) != "Cf"
    )


def is_one_edit(shorter: str, longer: str) -> bool:
    """Whether one character was added, changed, or changed places with its neighbour."""
    if len(longer) - len(shorter) > 1:
        return False
    at = next(
        (place for place, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b),
        len(shorter),
    )
    if len(longer) > len(shorter):
        return shorter[at:] == longer[at + 1 :]
    swapped = longer[at + 1 : at + 2] + longer[at : at + 1]
    return shorter[at + 1 :] == longer[at + 1 :] or (
        shorter[at : at + 2] == swapped and shorter[at + 2 :] == longer[at + 2 :]
    )


def likely(correlation: str) -> list[str]:
    """Texts that are `correlation` with a common mistake: looked up by themselves, they are found
    however long ago they came."""
    variants = (
        correlation,
        correlation.lower(),
        correlation.upper(),
        correlation.strip(),
        unspaced(correlation),
        f" {correlation}",
        f"{correlation} ",
        f"{correlation}\n",
    )
    return list(dict.fromkeys(variants))


# --- side by side -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text beside another: `same`, `other` than there, or `none` where it has more.

    `named` says what is not seen, or looks like something else.
    """

    text: str
    kind: Literal["same", "other", "none"] = "same"
    named: str = ""


Pieces = tuple[Piece, ...]


def side_by_side(wanted: str, said: str) -> tuple[Pieces, Pieces]:
    """Cut both texts so that the parts in which they differ stand by themselves."""
    left: list[Piece] = []
    right: list[Piece] = []
    for kind, a, b, c, d in SequenceMatcher(None, wanted, said, autojunk=False).get_opcodes():
        if kind == "equal":
            left.append(Piece(wanted[a:b]))
            right.append(Piece(said[c:d]))
        else:
            left.append(marked(wanted[a:b]))
            right.append(marked(said[c:d]))
    return tuple(left), tuple(right)


def marked(text: str) -> Piece:
    return Piece(text, "other", named(text)) if text else Piece("", "none", "nothing here")


def named(text: str) -> str:
    """The names of those characters that are not seen, or look like others."""
    names = [
        f"{unicodedata.name(each, 'unnamed').lower()} (U+{ord(each):04X})"
        for each in text
        if not (each.isascii() and each.isprintable()) or each == " "
    ]
    return ", ".join(dict.fromkeys(names))


def side_by_side_types(wanted: Sequence[str], said: str) -> tuple[Pieces, Pieces]:
    """As `side_by_side`, beside that of the expected types which is most like what was said."""
    best = max(wanted, key=lambda each: SequenceMatcher(None, each, said).ratio(), default="")
    return side_by_side(best, said)
