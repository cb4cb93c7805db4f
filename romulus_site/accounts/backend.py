"""How a session's person is read: with their preferences, which every page needs."""

from __future__ import annotations

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User


class WithProfile(ModelBackend):
    """Django's own, with one query for the account and its profile."""

    def get_user(self, user_id: int) -> User | None:
        """None where there is no such account, or it may not sign in any more."""
        user = User.objects.select_related("profile").filter(pk=user_id).first()
        return user if user is not None and self.user_can_authenticate(user) else None
