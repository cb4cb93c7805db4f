"""What a new system starts with: an administrator, and for the demonstration its owners.

Passwords are made here and told once; they are stored only as hashes.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from django.contrib.auth.models import User
from django.db import transaction

ADMINISTRATOR = "admin"
# Who answers for what, in the demonstration: a role is an account.
OWNERS = {
    "support_owner": ("Support", "owner"),
    "finance_owner": ("Finance", "owner"),
    "platform_owner": ("Platform", "owner"),
}


@dataclass
class FirstRun:
    """What to tell the person at the terminal, a line each."""

    messages: list[str] = field(default_factory=list)


@transaction.atomic
def prepare(*, demo: bool) -> FirstRun:
    """Make the accounts that are missing; say each new password once."""
    told = FirstRun()
    if User.objects.filter(is_superuser=True).exists():
        told.messages.append(
            f"{ADMINISTRATOR}: as told at the first start "
            f"(forgotten: python manage.py changepassword {ADMINISTRATOR})"
        )
    else:
        password = secrets.token_urlsafe(12)
        User.objects.create_superuser(ADMINISTRATOR, password=password, first_name="Administrator")
        told.messages.append(f"{ADMINISTRATOR}: {password}   (told only now; keep it)")
    if demo:
        told.messages += [line for name in OWNERS if (line := make_owner(name))]
    return told


def make_owner(name: str) -> str:
    """Make one demonstration owner; return the line that tells the password, if it is new."""
    if User.objects.filter(username=name).exists():
        return ""
    password = secrets.token_urlsafe(9)
    first, last = OWNERS[name]
    User.objects.create_user(name, password=password, first_name=first, last_name=last)
    return f"{name}: {password}"
