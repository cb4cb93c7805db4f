"""What people do to runs goes into the audit record, in the transaction that does it.

The app that keeps the record registers itself when it is ready; this app never imports it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.contrib.auth.models import User

Recorder = Callable[[str, str, str, dict[str, Any]], object]

_recorders: list[Recorder] = []


def register_recorder(recorder: Recorder) -> None:
    """Let `recorder(actor, verb, object, detail)` keep each entry."""
    _recorders[:] = [recorder]


def record(actor: str, verb: str, object: str, **detail: Any) -> None:
    """Record what `actor` did; `detail` holds no payload and no secret (promise P9)."""
    for recorder in _recorders:
        recorder(actor, verb, object, detail)


def actor_of(user: User) -> str:
    """What a person is called in the record; `core.words.who` makes a name of it again."""
    return f"user:{user.pk} {user.get_username()}"
