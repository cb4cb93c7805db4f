"""What allauth asks this console: who may come in, and how its secrets are kept."""

from __future__ import annotations

from typing import Any, ClassVar

import structlog
from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.providers.base import AuthProcess
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from romulus_site.accounts import resets
from romulus_site.views import not_allowed
from workflows.sealing import seal, unseal

log = structlog.get_logger(__name__)

# What the secrets of authenticator apps and the seeds of recovery codes are sealed for.
PURPOSE = b"second factor"
NOT_JOINED = (
    "An account is joined to single sign-on by the address that the provider has verified, when "
    "its person signs in there. Nothing was changed."
)


class AccountAdapter(DefaultAccountAdapter):
    """Accounts are made by administrators."""

    error_messages: ClassVar = DefaultAccountAdapter.error_messages | {
        "too_many_login_attempts": "Too many wrong passwords or codes. Wait five minutes, then try "
        "again; what was typed meanwhile is not looked at."
    }

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
        if sociallogin.state.get("process") != AuthProcess.LOGIN:
            # allauth would join whom the provider knows to whoever is signed in here: by a link,
            # which another site may have led a browser through.
            raise ImmediateHttpResponse(not_allowed(request, PermissionDenied(NOT_JOINED)))
        if sociallogin.is_existing:
            return
        verified = any(each.verified for each in sociallogin.email_addresses)
        user = account_of(address_in(sociallogin)) if verified else None
        if user is not None:
            sociallogin.connect(request, user)


def address_in(sociallogin: Any) -> str:
    """The address as the provider says it: allauth has made small letters of all of it, also of
    what only looks like one (`folded`). Empty for what no account can have."""
    said = sociallogin.account.get_provider_account().get_user_data() or {}
    address = str(said.get("email", ""))
    return address if address.isprintable() else ""


def account_of(address: str) -> User | None:
    """The one active account with this address; none when there are several, or it is empty."""
    if not address:
        return None
    alike = User.objects.filter(email__iexact=address, is_active=True)
    found = [user for user in alike if folded(user.email) == folded(address)]
    return found[0] if len(found) == 1 else None


def folded(address: str) -> str:
    """An address whatever the case of its plain letters; of others no two are the same: a dotless i
    is an I to the database, a long s an S, and each may stand in somebody else's address."""
    return address.encode().lower().decode()


class MFAAdapter(DefaultMFAAdapter):
    """Keeps the secrets of second factors sealed (docs/architecture.md, promise P9)."""

    def encrypt(self, text: str) -> str:
        return seal(text.encode(), PURPOSE).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return unseal(encrypted_text.encode(), PURPOSE).decode()
