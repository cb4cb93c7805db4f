"""Letters by e-mail, through the mail server of the site's settings."""

from __future__ import annotations

import smtplib
from email.utils import parseaddr

import structlog
from django.conf import settings
from django.core.mail import BadHeaderError, EmailMultiAlternatives

from reconciliation.core.channels import TAKEN, Outcome
from reconciliation.core.letters import Letter, as_html, as_text, subject

log = structlog.get_logger(__name__)

NO_SERVER = "No mail server is set up on this site (EMAIL_URL)."
TO_THE_LOG = "django.core.mail.backends.console.EmailBackend"
PERMANENT = 500  # SMTP: from here on the server will say the same again
UNKNOWN_MAILBOX = frozenset({550, 551, 553})  # RFC 5321: not there, not here, not allowed


def is_set_up() -> bool:
    """Whether e-mail leaves at all: without a server it would only stand in a worker's log."""
    return settings.EMAIL_BACKEND != TO_THE_LOG


def send_mail(mailbox: str, letter: Letter) -> Outcome:
    """Hand `letter` to the mail server once; raises nothing.

    The Message-ID is the same at each try: a server or reader may know it for the same message.
    """
    if not is_set_up():
        return Outcome(NO_SERVER)
    message = EmailMultiAlternatives(
        subject=subject(letter),
        body=as_text(letter),
        to=[mailbox],
        headers={
            "Message-ID": f"<{letter.id}@{domain()}>",
            # RFC 3834: nobody's absence is answered to it.
            "Auto-Submitted": "auto-generated",
        },
    )
    message.attach_alternative(as_html(letter), "text/html")
    try:
        message.send()
    except smtplib.SMTPRecipientsRefused as error:
        code = next((code for code, _ in error.recipients.values()), PERMANENT)
        lasting = code in UNKNOWN_MAILBOX
        return Outcome(f"The mail server refuses this mailbox ({code}).", lasting=lasting)
    except smtplib.SMTPResponseException as error:
        return Outcome(f"The mail server answered {error.smtp_code}.")
    except BadHeaderError:
        return Outcome("The address is none that an e-mail can have.", lasting=True)
    except (OSError, smtplib.SMTPException) as error:
        log.info("mail.not_sent", error=type(error).__name__)
        return Outcome(f"The mail server could not be spoken to ({type(error).__name__}).")
    return TAKEN


def domain() -> str:
    """Of the sender: what a Message-ID ends with."""
    address = parseaddr(settings.DEFAULT_FROM_EMAIL)[1]
    return address.rpartition("@")[2] or "localhost"
