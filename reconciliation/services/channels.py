"""Setting channels up: what an administrator saves, checked, sealed and on record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from reconciliation.adapters.network import resolves_to_allowed
from reconciliation.channels.posting import ALLOWED_AS
from reconciliation.core.addresses import (
    REFUSED,
    address_problem,
    allowed_for,
    parse_address,
)
from reconciliation.core.channels import ChannelKind
from reconciliation.core.errors import InvalidChannel, InvalidProvider
from reconciliation.models import Channel
from reconciliation.sealing import seal
from reconciliation.services.audit import actor_of, add_entry
from reconciliation.services.delivering import start_again, subject_of
from workflows.core.signatures import standard_key

# Standard Webhooks: between 24 and 64 bytes of secret.
LEAST_SECRET, MOST_SECRET = 24, 64


@dataclass(frozen=True)
class Typed:
    """What an administrator typed in beside the channel's own fields; empty: as it was."""

    address: str = ""
    secret: str = ""


def check_channel(channel: Channel, typed: Typed) -> None:
    """Raise `InvalidChannel`, which names the field, where it cannot be used so."""
    if (channel.queue is None) == (channel.person is None):
        raise InvalidChannel("queue", "A channel is of a queue or of a person: choose one of them.")
    if channel.kind == ChannelKind.EMAIL:
        check_mailbox(channel, typed.address)
        return
    if not (typed.address or channel.address_sealed):
        raise InvalidChannel("address", "Give the address that it is posted to.")
    if typed.address:
        check_address(typed.address)
    if channel.kind == ChannelKind.WEBHOOK:
        check_secret(channel, typed.secret)


def check_mailbox(channel: Channel, address: str) -> None:
    if not address:
        if channel.person is None:
            raise InvalidChannel("address", "Give the mailbox of the queue.")
        return
    try:
        validate_email(address)
    except ValidationError as error:
        raise InvalidChannel("address", "Give a plain address such as desk@example.com.") from error


def check_address(address: str) -> None:
    """Public addresses alone, but for those that the setting names for `notifications`."""
    try:
        allowed = allowed_for(ALLOWED_AS, settings.ROMULUS_ALLOWED_ADDRESSES)
    except InvalidProvider as error:
        raise InvalidChannel("address", str(error)) from error
    problem = address_problem(address, allowed)
    if not problem and not resolves_to_allowed(parse_address(address), allowed):
        problem = REFUSED
    if problem:
        said = problem.replace("for this provider", f"for {ALLOWED_AS}")
        raise InvalidChannel("address", f"Another address is needed: {said}.")


def check_secret(channel: Channel, secret: str) -> None:
    if not secret and channel.secret_sealed:
        return
    key = standard_key(secret)
    if key is None or not LEAST_SECRET <= len(key) <= MOST_SECRET:
        raise InvalidChannel(
            "secret",
            f"Give a secret of Standard Webhooks: whsec_ and {LEAST_SECRET} to {MOST_SECRET} "
            "bytes in base64.",
        )


@transaction.atomic
def save_channel(channel: Channel, typed: Typed, *, by: User) -> None:
    """Save it; a new address or secret is sealed, replaces the one before, and starts it again."""
    before = said_of(
        Channel.objects.select_related("queue", "person").filter(pk=channel.pk).first()
    )
    if channel.kind == ChannelKind.EMAIL:
        channel.address = typed.address
    elif typed.address:
        channel.address = shown(typed.address)
        channel.address_sealed = seal(typed.address.encode())
    if typed.secret:
        channel.secret_sealed = seal(typed.secret.encode())
    channel.save()
    after = said_of(channel) | {
        "new address": bool(typed.address),
        "new secret": bool(typed.secret),
    }
    add_entry(actor_of(by), "set channel", subject_of(channel), {"before": before, "after": after})
    if before and (typed.address or typed.secret):
        start_again(channel, actor_of(by))


def said_of(channel: Channel | None) -> dict[str, Any]:
    """What of it may be read on the record; nothing of what is sealed."""
    if channel is None:
        return {}
    return {
        "of": f"queue:{channel.queue.slug}" if channel.queue else f"user:{channel.person}",
        "kind": str(channel.kind),
        "address": channel.address,
        "per minute": channel.per_minute,
        "enabled": channel.enabled,
    }


def shown(address: str) -> str:
    """What people see of it: such addresses often hold a secret behind the host."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}/…"[:200]
