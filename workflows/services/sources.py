"""Setting up sources of events and their secrets: checked, on record, and no secret ever shown.

A secret is sealed when it is added and never given out again; only one that was made here is given
to whoever has added it, once. An audit entry names what was changed and never a value.
"""

from __future__ import annotations

import base64
import secrets as random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q, QuerySet

from workflows.core.errors import InvalidSource
from workflows.core.signatures import STANDARD_PREFIX
from workflows.core.source_rules import MAX_IN_FORCE, Configuration, Problems, problems_of
from workflows.core.source_rules import secret_problem as problem_of_secret
from workflows.core.sources import Scheme
from workflows.models import EventSource, SourceSecret
from workflows.sealing import seal
from workflows.services import audit, known_sources
from workflows.services.changes import changes_of
from workflows.services.clock import database_now
from workflows.services.known_sources import PURPOSE

OTHER_TENANT = (
    "A source stays with its tenant: its secrets and what it has sent are that tenant's. Set up "
    "another one."
)
OTHER_SECRETS = "The source has secrets of the scheme that it had: let them end first."
BYTES = 32  # of a secret that is made here
MAX_LABEL = 100
# These give out the secrets themselves: one that was made here would fit nothing.
GIVEN_BY_SENDER = frozenset({Scheme.STRIPE, Scheme.SLACK})


@dataclass(frozen=True, slots=True)
class Added:
    """A new secret; `made` is its value where it was made here, to be shown once."""

    secret: SourceSecret
    made: str | None


def source_problems(source: EventSource) -> Problems:
    """What cannot work, by field, in sentences: as the admin's form and `save_source` check it."""
    problems = problems_of(configuration_of(source))
    saved = EventSource.objects.filter(pk=source.pk)
    if saved.exclude(tenant=source.tenant_id).exists():
        problems.setdefault("tenant", []).append(OTHER_TENANT)
    before = saved.exclude(scheme=source.scheme)
    if before.filter(secrets__in=SourceSecret.objects.filter(not_ended_at(database_now()))):
        problems.setdefault("scheme", []).append(OTHER_SECRETS)
    return problems


def field_problems(source: EventSource) -> Problems:
    """What its columns cannot hold: a form has looked at that by itself."""
    try:
        source.full_clean()
    except ValidationError as error:
        return error.message_dict
    return {}


def configuration_of(source: EventSource) -> Configuration:
    return Configuration(**{name: getattr(source, name) for name in Configuration.__slots__})


@transaction.atomic
def save_source(source: EventSource, *, by: str, changed: Sequence[str]) -> None:
    """Save a source; deliveries are judged by it within a second.

    Args:
        by: who has set it up, for the record (`audit.actor_of`).
        changed: the names of the fields that were changed.

    Raises:
        InvalidSource: names each field that cannot work.
    """
    if problems := source_problems(source) or field_problems(source):
        raise InvalidSource(problems)
    changes = changes_of(source, changed)
    source.save()
    audit.record(by, "set up", name_of(source), changes=changes)
    transaction.on_commit(known_sources.forget)


def name_of(source: EventSource) -> str:
    return f"source:{source.slug}"


# --- secrets ----------------------------------------------------------------------------------


@transaction.atomic
def add_secret(
    source: EventSource,
    label: str,
    *,
    by: str,
    value: str = "",
    valid_from: datetime | None = None,
    old_ones_end: datetime | None = None,
) -> Added:
    """Add a secret beside those that the source has.

    Args:
        value: as the sender gave it; empty makes one, which the sender is then to be given.
        valid_from: from when what it signs counts; None is now.
        old_ones_end: when those that are in force now end: a rotation.

    Raises:
        InvalidSource: says by field what is wrong; never the value.
    """
    # Two administrators at once: the second sees what the first has added.
    EventSource.objects.select_for_update(no_key=True).get(pk=source.pk)
    now = database_now()
    scheme = Scheme(source.scheme)
    made = make(scheme) if not value and scheme not in GIVEN_BY_SENDER else None
    ensure_secret(source, label, made or value, now, old_ones_end)
    start = valid_from or now
    if old_ones_end is not None:
        in_force(source, now).update(valid_until=old_ones_end)
    row = SourceSecret.objects.create(
        source=source,
        label=label,
        sealed=seal((made or value).encode(), PURPOSE),
        valid_from=start,
    )
    ends = old_ones_end.isoformat() if old_ones_end else None
    audit.record(
        by,
        "added secret",
        name_of(source),
        label=label,
        valid_from=start.isoformat(),
        old_ones_end=ends,
    )
    transaction.on_commit(known_sources.forget)
    return Added(row, made)


def ensure_secret(
    source: EventSource, label: str, value: str, now: datetime, old_ones_end: datetime | None
) -> None:
    problems: Problems = {}
    if not label.strip() or len(label) > MAX_LABEL or not label.isprintable():
        problems["label"] = [f"Name it, in {MAX_LABEL} characters at most."]
    elif SourceSecret.objects.filter(source=source, label=label).exists():
        problems["label"] = ["The source has a secret of this name: notes could mean either."]
    if problem := problem_of_secret(Scheme(source.scheme), value):
        problems["value"] = [problem]
    if old_ones_end is not None and old_ones_end <= now:
        problems["old_ones_end"] = ["It is past: the sender needs time to take the new one."]
    not_ended = SourceSecret.objects.filter(source=source).filter(not_ended_at(now))
    if not_ended.count() >= MAX_IN_FORCE:
        problems["label"] = [f"{MAX_IN_FORCE} are in force or to come: let one end first."]
    if problems:
        raise InvalidSource(problems)


def end_secret(secret: SourceSecret, at: datetime | None = None, *, by: str) -> bool:
    """Let a secret count until `at`, or no longer than now; False when it has ended already.

    Raises:
        InvalidSource: it would end before it has begun.
    """
    with transaction.atomic():
        now = database_now()
        end = max(at or now, now)
        rows = SourceSecret.objects.filter(not_ended_at(now), pk=secret.pk)
        if rows.filter(valid_from__gte=end).exists():
            raise InvalidSource({"at": ["It has not begun by then: let it end later."]})
        if not rows.update(valid_until=end):
            return False
        audit.record(
            by,
            "ended secret",
            name_of(secret.source),
            label=secret.label,
            valid_until=end.isoformat(),
        )
        transaction.on_commit(known_sources.forget)
    return True


def not_ended_at(now: datetime) -> Q:
    return Q(valid_until__isnull=True) | Q(valid_until__gt=now)


def in_force(source: EventSource, now: datetime) -> QuerySet[SourceSecret]:
    return SourceSecret.objects.filter(not_ended_at(now), source=source, valid_from__lte=now)


def make(scheme: Scheme) -> str:
    if scheme is Scheme.STANDARD_WEBHOOKS:
        return STANDARD_PREFIX + base64.b64encode(random.token_bytes(BYTES)).decode()
    return random.token_urlsafe(BYTES)
