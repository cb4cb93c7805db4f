"""What allauth asks this console: who may come in, and how its secrets are kept."""

from __future__ import annotations

from typing import Any

import structlog
from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest

from romulus_site.accounts import resets
from workflows.sealing import seal, unseal

log = structlog.get_logger(__name__)

# What the secrets of authenticator apps and the seeds of recovery codes are sealed for.
PURPOSE = b"second factor"


class AccountAdapter(DefaultAccountAdapter):
    """Accounts are made by administrators."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:  # noqa: ARG002 (allauth's name)
        return False

    def send_password_reset_mail(self, user: User, *_: Any) -> None:
        """A worker sends it. The link begins as those of notifications do, where that is set: no
        header of a request says then where a password is typed in."""
        here = f"{self.request.scheme}://{self.request.get_host()}"
        resets.ask(user, settings.ROMULUS_CONSOLE_URL or here)

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        """Count it against the name that was tried, and log it without that: a password is
        typed into the wrong field now and then."""
        super().authentication_failed(request, **credentials)
        log.warning("account.sign_in_failed", address=self.get_client_ip(request))

    def add_message(self, request: HttpRequest, level: int, *args: Any, **kwargs: Any) -> None:
        """Only what went wrong is said this way: pages show by themselves what has happened."""
        if level >= messages.ERROR:
            super().add_message(request, level, *args, **kwargs)


class SocialAccountAdapter(DefaultSocialAccountAdapter):
    """Whom an OpenID provider vouches for comes in where an administrator has made them an account.

    The first time they are known by the address that the provider has verified; from then on by
    the provider's own ID for them.
    """

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:  # noqa: ARG002
        return False

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        if sociallogin.is_existing:
            return
        verified = {each.email for each in sociallogin.email_addresses if each.verified}
        user = account_of(verified)
        if user is not None:
            sociallogin.connect(request, user)


def account_of(addresses: set[str]) -> User | None:
    """The one active account with one of these addresses; none when there are several."""
    found = set[User]()
    for address in addresses:
        found |= set(User.objects.filter(email__iexact=address, is_active=True)[:2])
    return found.pop() if len(found) == 1 else None


class MFAAdapter(DefaultMFAAdapter):
    """Keeps the secrets of second factors sealed (docs/architecture.md, promise P9)."""

    def encrypt(self, text: str) -> str:
        return seal(text.encode(), PURPOSE).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return unseal(encrypted_text.encode(), PURPOSE).decode()
