"""Django's PostgreSQL, for processes that live long (see `base`)."""
