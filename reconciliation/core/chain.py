"""The rule of the audit record's chain, and how a few of its entries are shown to belong to it.

Each entry has a *content*, the digest of what it says, and a *hash* over its number, that content,
the hash of the entry before it, and the hash of one further back (`skip_of`). So an entry that
may not be shown can stand in a proof by its content alone, and from any entry a short way leads
to any earlier one: some twenty steps in a million entries, a few hundred at the very worst. The
salt keeps an entry's content from being guessed from its digest.

An entry without a salt was written before there were contents (the first rule): its hash is
over all that it says, and it proves itself but nothing that is not shown.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import rfc8785


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the record; `at` is its time in UTC, in ISO 8601."""

    seq: int
    at: str
    actor: str
    verb: str
    object: str
    detail: Any
    salt: str
    previous_hash: str
    skip_hash: str

    @property
    def is_of_first_rule(self) -> bool:
        return not self.salt

    @property
    def said(self) -> bytes:
        """What it says, in the one serialisation (RFC 8785) that its digest is made of."""
        bound = self.previous_hash if self.is_of_first_rule else self.salt
        fields = [self.seq, self.at, self.actor, self.verb, self.object, self.detail, bound]
        return rfc8785.dumps(fields)

    @property
    def content(self) -> str:
        return hashlib.sha256(self.said).hexdigest()

    @property
    def hash(self) -> str:
        if self.is_of_first_rule:
            return self.content
        return link_hash(self.seq, self.content, self.previous_hash, self.skip_hash)


def link_hash(seq: int, content: str, previous_hash: str, skip_hash: str) -> str:
    """The hash that later entries are chained to; needs nothing that an entry says."""
    lines = "\n".join([str(seq), content, previous_hash, skip_hash])
    return hashlib.sha256(lines.encode()).hexdigest()


def skip_of(seq: int) -> int:
    """The earlier entry whose hash entry `seq` carries beside its forerunner's; 0 for none.

    Its number with the lowest bit that is set cleared: 12 carries 8, 13 carries 12, 16 none.
    """
    return seq & (seq - 1)


def route(head: int, shown: Iterable[int]) -> list[int]:
    """The numbers of the entries that lead from `head` down to each of `shown`, in that order.

    Each is the forerunner of the one before it, or the one further back that this one carries.
    """
    at, way = head, [head]
    for target in sorted(set(shown), reverse=True):
        while at > target:
            at = skip_of(at) if skip_of(at) >= target else at - 1
            way.append(at)
    return way
