"""Django's sessions in the database, read by a prepared statement: every page and every poll asks
for one, and Django takes longer to make the question anew than the server to answer it."""

from __future__ import annotations

from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.utils import timezone

from workflows.sql import fetch_of
from workflows.sql.statement import Statement

READ = Statement(
    "session",
    "SELECT session_key, session_data, expire_date FROM django_session"
    " WHERE session_key = %(session_key)s AND expire_date > %(now)s",
)


class SessionStore(db.SessionStore):
    def _get_session_from_db(self) -> Session | None:
        """The row of a session that has not ended by this machine's clock, as Django's own."""
        given = {"session_key": self.session_key, "now": timezone.now()}
        for row in fetch_of(READ, given):
            return Session(**row)
        self._session_key = None
        return None
