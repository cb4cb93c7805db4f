"""Tokens of executors elsewhere that ask the boundary: made once, shown once, kept as a digest."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from workflows.failpoints import failpoint
from workflows.models import AccessToken, Tenant
from workflows.models.ids import new_id
from workflows.services import audit

BYTES = 32
NOBODY = hashlib.sha256(b"").hexdigest()


def add_token(label: str, tenant: Tenant, *, by: str) -> str:
    """Make a token that asks about `tenant` alone; return it, which nothing ever does again."""
    secret = secrets.token_urlsafe(BYTES)
    failpoint("before_policy")
    with transaction.atomic():
        row = AccessToken.objects.create(
            pk=new_id(), label=label, tenant=tenant, digest=digest_of(secret)
        )
        audit.record(by, "added token", f"token:{row.pk}", label=label, tenant=tenant.slug)
    failpoint("after_policy")
    return f"{row.pk}.{secret}"


def end_token(token: UUID, *, by: str) -> bool:
    """Let a token end now; False when it had ended already."""
    failpoint("before_policy")
    with transaction.atomic():
        ended = AccessToken.objects.filter(pk=token, ended_at=None).update(ended_at=Now()) == 1
        if ended:
            audit.record(by, "ended token", f"token:{token}")
    failpoint("after_policy")
    return ended


def known_token(text: str) -> AccessToken | None:
    """The token that `text` is; None for what is none, or has ended. In constant time."""
    name, _, secret = text.partition(".")
    try:
        row = AccessToken.objects.select_related("tenant").filter(pk=UUID(name)).first()
    except ValueError:
        row = None
    same = hmac.compare_digest(digest_of(secret), row.digest if row else NOBODY)
    return row if row is not None and same and row.ended_at is None else None


def digest_of(secret: str) -> str:
    # A random secret of 32 bytes needs no slow hash: nobody can try them all.
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
