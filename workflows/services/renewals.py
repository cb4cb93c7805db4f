"""Approvals that lapsed before their write: whether one is wanted again, and going on with it.

The app that keeps operations registers itself when it is ready; this app never imports it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol
from uuid import UUID


class Renewals(Protocol):
    """What another app knows of the writes that wait for an approval."""

    def wanted(self, roots: Collection[UUID]) -> set[UUID]:
        """Those of the proposals whose write is held because its authorisation lapsed."""

    def resume(self, root: UUID, by: str) -> None:
        """The same was approved again, in this transaction, which holds the run: let the write go
        on to its own check."""


_registered: list[Renewals] = []


def register_renewals(keeper: Renewals) -> None:
    _registered[:] = [keeper]


def wanted(roots: Collection[UUID]) -> set[UUID]:
    return next((each.wanted(roots) for each in _registered), set())


def resume(root: UUID, by: str) -> None:
    for each in _registered:
        each.resume(root, by)
