"""Sessions in the database as Django keeps them, read with one statement that is planned once.

Every page and every poll reads one: to have the question made took longer than to answer it.
"""

from __future__ import annotations

from typing import Any

from django.contrib.sessions.backends import db
from django.utils import timezone

from workflows.sql import fetch_of
from workflows.sql.statement import Statement

OPEN_SESSION = Statement(
    "session_read",
    "SELECT session_data FROM django_session"
    " WHERE session_key = %(session_key)s AND expire_date > %(now)s",
)


class SessionStore(db.SessionStore):
    """Under Django's name, which goes into the signature of what a session holds."""

    def load(self) -> dict[str, Any]:
        key = self.session_key or ""
        # No key of ours looks otherwise, whatever a cookie says.
        known = key.isascii() and key.isalnum()
        asked = {"session_key": key, "now": timezone.now()}
        for row in fetch_of(OPEN_SESSION, asked) if known else ():
            held: dict[str, Any] = self.decode(row["session_data"])
            return held
        self._session_key = None
        return {}
