"""What people do to runs goes into the audit record, in the transaction that does it; and who did
it is read there.

The app that keeps the record registers itself when it is ready; this app never imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from django.db.models import Expression

if TYPE_CHECKING:
    from django.contrib.auth.models import User

Recorder = Callable[[str, str, str, dict[str, Any]], object]

# Objects by what the record calls them, or an expression for that.
Objects = Sequence[str] | Expression

Reader = Callable[[str, Objects], Iterable[str]]

_recorders: list[Recorder] = []
_readers: list[Reader] = []


def register_recorder(recorder: Recorder) -> None:
    """Let `recorder(actor, verb, object, detail)` keep each entry."""
    _recorders[:] = [recorder]


def register_reader(reader: Reader) -> None:
    """Let `reader(verb, objects)` say which actors did that to any of the objects."""
    _readers[:] = [reader]


def actors(verb: str, objects: Objects) -> set[str]:
    """Who did `verb` to any of `objects`, as the record calls them."""
    return {actor for reader in _readers for actor in reader(verb, objects)}


def record(actor: str, verb: str, object: str, **detail: Any) -> None:
    """Record what `actor` did; `detail` holds no payload and no secret (promise P9)."""
    for recorder in _recorders:
        recorder(actor, verb, object, detail)


def actor_of(user: User) -> str:
    """What a person is called in the record; `core.words.who` makes a name of it again."""
    return f"user:{user.pk} {user.get_username()}"
