"""Sources as deliveries need them, read at most once a second: setting one up counts by then.

A delivery so costs no question about its source. The clock stays the database's: it is read with
the source and carried on by this process's own clock for the second that this counts.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from cryptography.fernet import InvalidToken
from pydantic import ValidationError

from workflows.core.errors import RomulusError
from workflows.core.schemes import Rules, Settings, SnsSettings, rules_of, settings_of
from workflows.core.signatures import Secret
from workflows.core.sources import Scheme
from workflows.models import EventSource, SourceSecret
from workflows.sealing import unseal
from workflows.services.clock import database_now

log = structlog.get_logger(__name__)

PURPOSE = b"source secret"  # what they are sealed for
FRESH_SECONDS = 1.0
# Secrets that are not in force are only good for telling what a refused request was signed with.
OTHERS_LOOKED_AT = 5


class SourceUnready(RomulusError):
    """This source cannot judge a delivery as it is set up."""


@dataclass(frozen=True, slots=True)
class Known:
    """A source, and when it was read."""

    id: UUID
    slug: str
    tenant: UUID
    enabled: bool
    scheme: Scheme
    settings: Settings
    secrets: tuple[Secret, ...]
    tolerance: timedelta
    rules: Rules
    max_bytes: int
    per_minute: int | None
    content_types: Collection[str]
    encodings: Collection[str]
    read_at: datetime  # by the database
    clock: float  # this process's then

    def now(self) -> datetime:
        return self.read_at + timedelta(seconds=time.monotonic() - self.clock)


_known: dict[str, Known] = {}


def known_source(slug: str) -> Known | None:
    """The source of this slug as it was within the last second; None when there is none.

    Raises:
        SourceUnready: its settings, or one of its secrets, cannot be read.
    """
    known = _known.get(slug)
    if known is not None and time.monotonic() - known.clock < FRESH_SECONDS:
        return known
    row = EventSource.objects.filter(slug=slug).first()
    if row is None:
        _known.pop(slug, None)
        return None
    _known[slug] = known = read(row)
    return known


def forget() -> None:
    """Read anew at the next delivery: this process has just changed something."""
    _known.clear()


def read(row: EventSource) -> Known:
    now, clock = database_now(), time.monotonic()
    try:
        settings = settings_of(Scheme(row.scheme), row.settings)
        rules = rules_now(row)
        named = certificates_of(settings, now) if isinstance(settings, SnsSettings) else ()
        secrets = named or secrets_of(row, now)
    except (ValidationError, InvalidToken) as error:
        # Without the error's text: a secret may stand where it does not belong.
        log.warning("source.unready", source=row.slug, error=type(error).__name__)
        raise SourceUnready from error
    return Known(
        id=row.pk,
        slug=row.slug,
        tenant=row.tenant_id,
        enabled=row.enabled,
        scheme=Scheme(row.scheme),
        settings=settings,
        secrets=secrets,
        tolerance=row.tolerance,
        rules=rules,
        max_bytes=row.max_bytes,
        per_minute=row.per_minute,
        content_types=frozenset(row.content_types),
        encodings=frozenset(row.encodings),
        read_at=now,
        clock=clock,
    )


def rules_now(source: EventSource) -> Rules:
    """How its events are read. Raises `pydantic.ValidationError`: its settings cannot be read."""
    scheme = Scheme(source.scheme)
    return rules_of(
        scheme,
        settings_of(scheme, source.settings),
        id_path=source.id_path,
        type_path=source.type_path,
        correlation_path=source.correlation_path,
        schemas=source.schemas,
    )


def secrets_of(source: EventSource, now: datetime) -> tuple[Secret, ...]:
    """What it signs with, opened: what is in force, then what was lately or is to come.

    Raises:
        InvalidToken: none of the keys in `ROMULUS_KEYS` opens one that is in force.
    """
    rows = SourceSecret.objects.filter(source=source).order_by("-valid_from", "-id")
    in_force = [row for row in rows if is_in_force(row, now)]
    others = [row for row in rows if not is_in_force(row, now)][:OTHERS_LOOKED_AT]
    told = [opened(row) for row in others if can_be_opened(row)]
    return (*map(opened, in_force), *told)


def is_in_force(row: SourceSecret, now: datetime) -> bool:
    return row.valid_from <= now and (row.valid_until is None or now < row.valid_until)


def opened(row: SourceSecret) -> Secret:
    value = unseal(row.sealed, PURPOSE).decode()
    return Secret(row.label, value, row.valid_from, row.valid_until)


def can_be_opened(row: SourceSecret) -> bool:
    """A key that sealed nothing but what has ended may be gone."""
    try:
        unseal(row.sealed, PURPOSE)
    except InvalidToken:
        return False
    return True


def certificates_of(settings: SnsSettings, now: datetime) -> tuple[Secret, ...]:
    """The certificates that a source names, as what its requests are signed with."""
    return tuple(
        Secret(f"certificate {number}", pem, valid_from=now)
        for number, pem in enumerate(settings.certificates, start=1)
    )
