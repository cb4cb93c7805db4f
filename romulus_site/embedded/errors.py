"""What can go wrong with the embedded PostgreSQL, in sentences for people."""

from __future__ import annotations


class EmbeddedError(Exception):
    """The embedded PostgreSQL cannot do its work."""


class AlreadyRunning(EmbeddedError):
    """Another process owns the server of this data folder."""
