"""Who acts: a person, an agent, a service account or a workflow; and who answers for a system."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from workflows.core.errors import UsageError
from workflows.core.words import is_storable

LONGEST_ID = 150
ID = re.compile(r"[^\s:][^:\x00-\x1f\x7f]*")


class SubjectType(StrEnum):
    PERSON = "person"
    AGENT = "agent"
    SERVICE = "service"
    WORKFLOW = "workflow"
    SOURCE = "source"  # of events: another system, for the people who approve there

    @property
    def label(self) -> str:
        """What it is called in front of its name."""
        return "service account" if self is SubjectType.SERVICE else str(self)


# The words of other systems for the same, as AuthZEN's examples use them.
ALIASES = {"user": SubjectType.PERSON, "service_account": SubjectType.SERVICE}


@dataclass(frozen=True, slots=True)
class Subject:
    """Somebody or something that acts; its text, "agent:refund-bot", is how policies name it."""

    type: SubjectType
    id: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises `UsageError` for what names no subject."""
        kind, _, name = text.partition(":")
        return cls.of(kind, name)

    @classmethod
    def of(cls, kind: str, name: str) -> Self:
        """Raises `UsageError` for a type that does not exist and for what is no ID."""
        known = ALIASES.get(kind) or next((each for each in SubjectType if each == kind), None)
        if known is None or not ID.fullmatch(name) or not is_storable(name, LONGEST_ID):
            types = ", ".join(SubjectType)
            raise UsageError(f"a subject is TYPE:ID, with one of the types {types}")
        return cls(known, name)

    def __str__(self) -> str:
        return f"{self.type}:{self.id}"

    @property
    def title(self) -> str:
        """For people, with its type: "agent refund-bot"."""
        return f"{self.type.label} {self.id}"

    @property
    def folded(self) -> tuple[SubjectType, str]:
        return self.type, unicodedata.normalize("NFKC", self.id).casefold()


def is_among(subject: Subject, others: Iterable[Subject]) -> bool:
    """Whether `subject` may be one of `others`. A program that proposes may write a name otherwise
    than the account has it, so case and look-alike characters tell nobody apart here."""
    return any(subject.folded == other.folded for other in others)
