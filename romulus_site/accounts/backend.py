"""How a session's person is read: with their preferences, which every page needs."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.db import DEFAULT_DB_ALIAS
from django.db.models import Model

from reconciliation.models import Profile
from workflows.sql import fetch_of
from workflows.sql.statement import Statement


def columns_of(model: type[Model]) -> list[str]:
    return [str(field.column) for field in model._meta.concrete_fields]


# Planned once, as every page and every poll asks it; the columns of the two have other names.
PERSON = Statement(
    "person_read",
    f"SELECT {', '.join(f'it.{name}' for name in columns_of(User))},"  # noqa: S608 (Django's own)
    f" {', '.join(f'own.{name}' for name in columns_of(Profile))}"
    " FROM auth_user it LEFT JOIN reconciliation_profile own ON own.user_id = it.id"
    " WHERE it.id = %(user)s",
)


class WithProfile(ModelBackend):
    """Django's own, with one query for the account and its profile."""

    def get_user(self, user_id: int) -> User | None:
        """None where there is no such account, or it may not sign in any more."""
        for row in fetch_of(PERSON, {"user": user_id}):
            user = made(User, row)
            # Where there is none, that is known, too.
            own = made(Profile, row) if row["user_id"] is not None else None
            user._state.fields_cache["profile"] = own
            if own is not None:
                own._state.fields_cache["user"] = user
            return user if self.user_can_authenticate(user) else None
        return None


def made(model: type[Any], row: dict[str, Any]) -> Any:
    """The object of `model` that `row` has the columns of."""
    names = [field.attname for field in model._meta.concrete_fields]
    return model.from_db(DEFAULT_DB_ALIAS, names, [row[name] for name in columns_of(model)])
