"""Links to choose a new password, mailed by a worker and not by the request that asks for one.

So whoever asks cannot tell from the time that it takes, or from an error of the mail server,
whether an account has the address; and nobody's page waits for that server.
"""

from __future__ import annotations

import smtplib
from datetime import timedelta
from urllib.parse import urlsplit

import structlog
from allauth.account import app_settings
from allauth.account.utils import user_pk_to_url_str
from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import send_mail
from django.db.models.functions import Now
from django.urls import reverse

from reconciliation.models import PasswordReset

log = structlog.get_logger(__name__)

# Longer than a mail server is waited for; then it is tried again.
TAKEN_FOR = timedelta(seconds=60)
# Whoever waited longer has asked again, or an administrator.
GIVEN_UP_AFTER = timedelta(hours=1)
MOST_AT_ONCE = 50

TEXT = """\
Somebody asked for a new password of the account {username} at {site}. If that was you, choose one
here; the link works once, for {days} days at most:

{url}

If it was not you, do nothing: the password stays as it is.
"""


def ask(user: User, site: str) -> None:
    """Have a link sent to `user`; one, however often it is asked for before it was sent.

    Args:
        site: the address of the console, which the link begins with.
    """
    now = {"asked_at": Now(), "next_at": Now()}
    PasswordReset.objects.update_or_create(person=user, defaults={"site": site, **now})


def send_due() -> int:
    """Send the links that are due; return how many were tried. Any number may do so at once."""
    given_up, _ = PasswordReset.objects.filter(asked_at__lt=Now() - GIVEN_UP_AFTER).delete()
    if given_up:
        log.error("password_reset.given_up", number=given_up)
    due = PasswordReset.objects.filter(next_at__lte=Now(), person__is_active=True)
    people = list(due.order_by("next_at").values_list("pk", flat=True)[:MOST_AT_ONCE])
    return sum(send(person) for person in people)


def send(person: int) -> bool:
    """Try to send one that is due; False when it is not, or another process has it."""
    due = PasswordReset.objects.filter(pk=person, next_at__lte=Now())
    if not due.update(next_at=Now() + TAKEN_FOR):
        return False
    asked = PasswordReset.objects.select_related("person").get(pk=person)
    try:
        mail(asked.person, asked.site)
    except (OSError, smtplib.SMTPException) as error:
        log.warning("password_reset.not_sent", error=type(error).__name__)
        return True
    # Who has asked again meanwhile gets another link.
    PasswordReset.objects.filter(pk=person, asked_at=asked.asked_at).delete()
    return True


def mail(user: User, site: str) -> None:
    """Plain text: nothing in it is markup, so nothing has to be escaped."""
    text = TEXT.format(
        username=user.get_username(),
        site=urlsplit(site).netloc,
        url=f"{site}{link_of(user)}",
        days=settings.PASSWORD_RESET_TIMEOUT // 86_400,
    )
    send_mail("A new password for Romulus", text, None, [user.email])


def link_of(user: User) -> str:
    """The path of the page on which `user` chooses a new password, once."""
    key = app_settings.PASSWORD_RESET_TOKEN_GENERATOR().make_token(user)
    named = {"uidb36": user_pk_to_url_str(user), "key": key}
    return reverse("account_reset_password_from_key", kwargs=named)
