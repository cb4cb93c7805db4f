"""What happens to an account goes into the audit record: by name, never with a secret."""

from __future__ import annotations

from typing import Any

from allauth.account.signals import password_changed, password_reset, user_logged_in
from allauth.mfa.models import Authenticator
from allauth.socialaccount.signals import social_account_added
from django.contrib.auth.models import User
from django.db.models.signals import post_delete, post_save
from django.http import HttpRequest

from romulus_site.accounts.sessions import begin, end_sessions
from workflows.services import audit
from workflows.services.access_tokens import end_own_tokens
from workflows.services.audit import actor_of


def note(user: User, verb: str, **detail: Any) -> None:
    audit.record(actor_of(user), verb, f"user:{user.pk}", **detail)


def signed_in(request: HttpRequest, user: User, **_: Any) -> None:
    used = request.session.get("account_authentication_methods", [])
    begin(request)
    note(user, "signed in", by=[str(each.get("type") or each["method"]) for each in used])


def chose_password(request: HttpRequest, user: User, **_: Any) -> None:
    """A new password: whoever knew the old one is signed out everywhere else, and has no token."""
    note(user, "changed password")
    end_sessions(user, keep=request.session.session_key)
    end_own_tokens(user, by=user)


def saved_factor(instance: Any, created: bool, **_: Any) -> None:
    """By the row, not by allauth's own signal: that comes when the change is committed already."""
    if created:
        note(instance.user, "added second factor", kind=str(instance.type))


def removed_factor(instance: Any, **_: Any) -> None:
    note(instance.user, "removed second factor", kind=str(instance.type))


def joined(sociallogin: Any, **_: Any) -> None:
    note(sociallogin.user, "joined to single sign-on", provider=sociallogin.account.provider)


RECEIVERS = (
    (user_logged_in, signed_in, None),
    (password_changed, chose_password, None),
    (password_reset, chose_password, None),
    (post_save, saved_factor, Authenticator),
    (post_delete, removed_factor, Authenticator),
    (social_account_added, joined, None),
)


def connect() -> None:
    """Listen, once."""
    for signal, receiver, sender in RECEIVERS:
        signal.connect(receiver, sender=sender, dispatch_uid=f"romulus.{receiver.__name__}")
