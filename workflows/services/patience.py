"""How long a transaction waits for what others have locked, where somebody waits for its answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import Error, connection


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Within this, a statement that waits longer for a lock fails with `OperationalError`."""
    with connection.cursor() as cursor:
        milliseconds = f"{round(seconds * 1000)}ms"
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", [milliseconds])
    try:
        yield
    finally:
        be_patient_again()


def be_patient_again() -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")
    except Error:
        # Whatever happened to this session, the next piece of work is not to inherit the limit.
        connection.close()
