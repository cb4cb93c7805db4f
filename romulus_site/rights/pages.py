"""What the pages of rights show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from romulus_site.rights.kinds import Kind, Right


@dataclass(frozen=True, slots=True)
class Cell:
    """One right of somebody: how it is held; `means` is empty where it is not."""

    word: str
    means: list[str]


def cells(kind: Kind, means: Mapping[str, list[str]]) -> list[Cell]:
    """The rights of `kind` in its order, of the `means` by codename."""
    return [Cell(right.word, means.get(right.codename, [])) for right in kind.rights]


@dataclass(frozen=True, slots=True)
class HolderRow:
    """Somebody who can do something with an object.

    Attributes:
        mark: what else they are: "owner", "closed account".
        change_url: where their rights are changed.
    """

    name: str
    cells: list[Cell]
    change_url: str
    mark: str = ""
    about_url: str = ""


@dataclass(frozen=True, slots=True)
class WhoPage:
    """Who can do what with one object. `next_people` and `next_groups` lead on; empty: the end."""

    kind: Kind
    subject: Any
    back: str
    people: list[HolderRow]
    groups: list[HolderRow]
    next_people: str
    next_groups: str


@dataclass(frozen=True, slots=True)
class ObjectRow:
    name: str
    url: str
    cells: list[Cell]


@dataclass(frozen=True, slots=True)
class Section:
    """The objects of one kind that somebody can do something with."""

    kind: Kind
    rows: list[ObjectRow]
    next: str


@dataclass(frozen=True, slots=True)
class WhatPage:
    """What one person or group can do. `all` says it where no list could."""

    name: str
    is_group: bool
    back: str
    all: str
    sections: list[Section]


@dataclass(frozen=True, slots=True)
class Choice:
    """One right to give or take."""

    right: Right
    held: bool
    means: list[str]
    not_yours: bool


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Changing what one person or group was given on an object."""

    kind: Kind
    subject: Any
    name: str
    is_group: bool
    choices: list[Choice]
    seen: str
    back: str
    refused: str = ""
