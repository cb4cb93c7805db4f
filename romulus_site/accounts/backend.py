"""How a session's person is read: with their preferences, which every page needs."""

from __future__ import annotations

from typing import Any, TypeVar

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.db import DEFAULT_DB_ALIAS
from django.db.models import Model

from reconciliation.models import Profile
from workflows.sql import fetch_of
from workflows.sql.statement import Row, Statement

Found = TypeVar("Found", bound=Model)


def columns_of(model: type[Model], table: str) -> str:
    fields = model._meta.concrete_fields
    return ", ".join(f"{table}.{field.column} AS {table}_{field.attname}" for field in fields)


# A prepared statement, because every page and every poll asks it: Django takes thirty times longer
# to make the question anew.
ACCOUNT = Statement(
    "account",
    f"""
    SELECT {columns_of(User, "account")}, {columns_of(Profile, "profile")}
    FROM {User._meta.db_table} account
    LEFT JOIN {Profile._meta.db_table} profile ON profile.user_id = account.id
    WHERE account.id = %(user)s
    """,  # noqa: S608 (names of our own models)
)


class WithProfile(ModelBackend):
    """Django's own, with one query for the account and its profile."""

    def get_user(self, user_id: int) -> User | None:
        """None where there is no such account, or it may not sign in any more."""
        for row in fetch_of(ACCOUNT, {"user": user_id}):
            user = made_of(row, User, "account")
            has_profile = row["profile_user_id"] is not None
            profile = made_of(row, Profile, "profile") if has_profile else None
            # As `select_related` leaves it; None: there is no row, and nobody looks again.
            User._meta.get_field("profile").set_cached_value(user, profile)
            return user if self.user_can_authenticate(user) else None
        return None


def made_of(row: Row, model: type[Found], table: str) -> Found:
    names = [field.attname for field in model._meta.concrete_fields]
    values: list[Any] = [row[f"{table}_{name}"] for name in names]
    return model.from_db(DEFAULT_DB_ALIAS, names, values)
