"""How tests ask as a page does that polls, and whether it is told what changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from http import HTTPStatus

from django.db import transaction
from django.test import Client

from tests.console.posting import fragment

# Of a poll to which nothing is new: session, person, and the stamp.
STATEMENTS = 3
TABLE = re.compile(r"\b((?:reconciliation|workflows|auth|guardian)_[a-z]+)\b")


def is_told(client: Client, polled: str, part: str, change: Callable[[], object]) -> bool:
    """Whether the poll of `part` says that something is new after `change`, which is taken back."""
    with transaction.atomic():
        change()
        told = fragment(client, polled, part).status_code == HTTPStatus.OK
        transaction.set_rollback(True)
    return told
