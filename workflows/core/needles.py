"""What a person typed to find something, and how well a text fits it: pure.

An exact match comes first, then what begins so, then what ends so: the number of an order without
the word before it. IDs are found by all of their
characters, by how they begin, or by their last six or more, with or without hyphens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from uuid import UUID

LONGEST = 300  # that any column keeps
SHORTEST = 3  # characters that a text must begin with, so that an index narrows it down
SHORTEST_ID = 6  # characters of an ID: its last six, as pages show them
DIGITS = 32
HEX = re.compile(r"[0-9a-f]+")


class Fit(IntEnum):
    """How well something fits, the best first."""

    EXACT = 0
    BEGINS = 1
    ENDS = 2
    NOT = 3


@dataclass(frozen=True)
class Needle:
    """A cleaned text. What a database cannot keep (NUL) is left out."""

    text: str

    @classmethod
    def of(cls, typed: str) -> Needle:
        return cls(typed.replace("\0", "").strip()[:LONGEST])

    @property
    def is_long_enough(self) -> bool:
        return len(self.text) >= SHORTEST

    @cached_property
    def digits(self) -> str:
        """The hexadecimal digits of an ID, or of a part of one; empty for what is none."""
        plain = self.text.lower().strip("{}….").replace("-", "")
        long_enough = SHORTEST_ID <= len(plain) <= DIGITS
        return plain if long_enough and HEX.fullmatch(plain) else ""

    @property
    def whole_id(self) -> UUID | None:
        return UUID(self.digits) if len(self.digits) == DIGITS else None

    @property
    def id_range(self) -> tuple[UUID, UUID] | None:
        """The least and the greatest ID that begin so; None for what is no beginning of one."""
        if not self.digits:
            return None
        return UUID(self.digits.ljust(DIGITS, "0")), UUID(self.digits.ljust(DIGITS, "f"))

    @property
    def text_range(self) -> tuple[str, str]:
        """Every text that begins so lies between these, by the order of code points."""
        return self.text, self.text + "\U0010ffff"

    @property
    def end_range(self) -> tuple[str, str]:
        """The same of texts that end so, each read from its end."""
        backward = self.text[::-1]
        return backward, backward + "\U0010ffff"

    @property
    def label(self) -> tuple[str, str] | None:
        """A label's name and value: "shop=north" or "shop: north"."""
        name, sign, value = re.split(r"\s*([=:])\s*", f"{self.text}=", maxsplit=1)[:3]
        value = value.removesuffix("=").strip()
        return (name.strip(), value) if sign and name.strip() and value else None

    def fit_of_id(self, pk: UUID) -> Fit:
        if not self.digits:
            return Fit.NOT
        if pk.hex == self.digits:
            return Fit.EXACT
        if pk.hex.startswith(self.digits):
            return Fit.BEGINS
        return Fit.ENDS if pk.hex.endswith(self.digits) else Fit.NOT

    def fit_of(self, text: str) -> Fit:
        if text == self.text:
            return Fit.EXACT
        if text.startswith(self.text):
            return Fit.BEGINS
        return Fit.ENDS if text.endswith(self.text) else Fit.NOT

    def best(self, pk: UUID, named: Iterable[tuple[str, str]]) -> tuple[Fit, str, str]:
        """How well something fits: by its ID or one of its `named` texts, and which of these."""
        fits = [(self.fit_of_id(pk), "ID", str(pk))]
        fits += [(self.fit_of(text), name, text) for name, text in named if text]
        return min(fits, key=lambda fit: fit[0])
