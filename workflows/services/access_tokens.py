"""Tokens: made once, shown once, kept as a digest.

One of a tenant lets an executor elsewhere ask the boundary. One of a person answers proposals in
their name; nobody but that person makes it, and it ends by itself.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import timedelta
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from workflows.core.errors import UsageError
from workflows.core.words import is_storable, read_length
from workflows.failpoints import failpoint
from workflows.models import AccessToken, Tenant
from workflows.models.ids import new_id
from workflows.services import audit
from workflows.services.clock import database_now

BYTES = 32
LONGEST_LABEL = 100
PERSONS_LAST = timedelta(days=90)
MOST_OF_A_PERSON = 20
NOBODY = hashlib.sha256(b"").hexdigest()


def add_token(label: str, tenant: Tenant, *, by: str) -> str:
    """Make a token that asks about `tenant` alone; return it, which nothing ever does again."""
    row = AccessToken(pk=new_id(), label=label, tenant=tenant)
    return saved(row, by=by, tenant=tenant.slug)


def add_own_token(label: str, user: User) -> str:
    """Make a token that answers in this person's name for `PERSONS_LAST`; return it, which nothing
    ever does again. Only the person themselves may ask for it.

    Raises:
        UsageError: they have `MOST_OF_A_PERSON` already, or the label is no plain text.
    """
    if not read_length(label) or not is_storable(label.strip(), LONGEST_LABEL):
        raise UsageError(f"Write what it is for, in {LONGEST_LABEL} characters at most.")
    if tokens_of(user).count() >= MOST_OF_A_PERSON:
        raise UsageError(f"You have {MOST_OF_A_PERSON} already: let one of them end first.")
    row = AccessToken(pk=new_id(), label=label.strip(), person=user)
    return saved(row, by=audit.actor_of(user))


def saved(row: AccessToken, *, by: str, **detail: str) -> str:
    secret = secrets.token_urlsafe(BYTES)
    row.digest = digest_of(secret)
    failpoint("before_policy")
    with transaction.atomic():
        row.save(force_insert=True)
        audit.record(by, "added token", f"token:{row.pk}", label=row.label, **detail)
    failpoint("after_policy")
    return f"{row.pk}.{secret}"


def tokens_of(user: User) -> QuerySet[AccessToken]:
    """The person's own tokens that still count, the newest first."""
    begun = AccessToken.objects.filter(person=user, created_at__gt=Now() - PERSONS_LAST)
    return begun.filter(ended_at=None).order_by("-pk")


def end_own_token(token: UUID, user: User) -> bool:
    """Let one of one's own tokens end now; False for any other."""
    if not AccessToken.objects.filter(pk=token, person=user).exists():
        return False
    return end_token(token, by=audit.actor_of(user))


def end_own_tokens(user: User, *, by: User) -> None:
    """Let every token of a person end now."""
    for token in tokens_of(user).values_list("pk", flat=True):
        end_token(token, by=audit.actor_of(by))


def end_token(token: UUID, *, by: str) -> bool:
    """Let a token end now; False when it had ended already."""
    failpoint("before_policy")
    with transaction.atomic():
        ended = AccessToken.objects.filter(pk=token, ended_at=None).update(ended_at=Now()) == 1
        if ended:
            audit.record(by, "ended token", f"token:{token}")
    failpoint("after_policy")
    return ended


def tenant_of_token(text: str) -> Tenant | None:
    """The tenant about which whoever shows `text` may ask; None for no such token."""
    row = known_token(text)
    return row.tenant if row else None


def person_of_token(text: str) -> User | None:
    """The person in whose name whoever shows `text` may answer; None for no such token."""
    row = known_token(text)
    if row is None or row.person is None or not row.person.is_active:
        return None
    return row.person if database_now() < row.created_at + PERSONS_LAST else None


def known_token(text: str) -> AccessToken | None:
    """The token that `text` is; None for what is none, or has ended. In constant time."""
    name, _, secret = text.partition(".")
    try:
        rows = AccessToken.objects.select_related("tenant", "person")
        row = rows.filter(pk=UUID(name)).first()
    except ValueError:
        row = None
    same = hmac.compare_digest(digest_of(secret), row.digest if row else NOBODY)
    return row if row is not None and same and row.ended_at is None else None


def digest_of(secret: str) -> str:
    # A random secret of 32 bytes needs no slow hash: nobody can try them all.
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
