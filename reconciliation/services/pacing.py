"""The turns in which a provider is asked: one queue for all workers on all machines.

A turn is reserved in the provider's row of `LookUpPace`, in one statement: two workers never get
the same one. An operation whose turn lies ahead is parked until then and keeps it; it is used once.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db import connection
from django.db.models import Exists, OuterRef

from reconciliation.core.facts import Facts, LookUp, Verify, Wait, WaitReason
from reconciliation.core.pacing import (
    MISSED,
    last_moment,
    pause_for,
    questions_of_look_up,
    spacing,
    turn_within,
)
from reconciliation.models import LookUpPace, Operation, Provider
from reconciliation.services.providers import contract_of
from workflows.services.clock import database_now

log = structlog.get_logger(__name__)

RESERVE = """
INSERT INTO reconciliation_lookuppace AS pace (provider_id, next_at)
VALUES (%(provider)s, statement_timestamp() + %(takes)s * interval '1 second')
ON CONFLICT (provider_id) DO UPDATE SET next_at =
    greatest(pace.next_at, pace.paused_until, statement_timestamp())
    + %(takes)s * interval '1 second'
RETURNING next_at - %(takes)s * interval '1 second'
"""
PAUSE = """
INSERT INTO reconciliation_lookuppace AS pace (provider_id, next_at, paused_until)
SELECT %(provider)s, now, now + %(pause)s * interval '1 second' FROM statement_timestamp() AS now
ON CONFLICT (provider_id) DO UPDATE
SET paused_until = greatest(pace.paused_until, excluded.paused_until)
"""


def at_pace(operation: Operation, facts: Facts, move: LookUp | Verify) -> LookUp | Verify | Wait:
    """`move` where it is the operation's turn to be asked about; else to wait for that."""
    now = database_now()
    last = last_moment(facts, now) if isinstance(move, LookUp) else None
    if use_turn(operation, now):
        return move
    turn = operation.turn_at
    if turn is None or turn <= now:
        turn = reserve_turn(operation, questions_of(operation, move))
    due = turn_within(turn, last)
    # A turn that is free is the moment of its own reservation.
    return move if due <= database_now() else Wait(due, WaitReason.AT_PACE)


def questions_of(operation: Operation, move: LookUp | Verify) -> int:
    return questions_of_look_up(contract_of(operation)) if isinstance(move, LookUp) else 1


def use_turn(operation: Operation, now: datetime) -> bool:
    """Whether the operation's own turn has come; it has none any more then.

    Not while its provider wants to be left alone, and not long after the turn was missed.
    """
    if operation.turn_at is None:
        return False
    paused = LookUpPace.objects.filter(provider=OuterRef("provider"), paused_until__gt=now)
    come = Operation.objects.filter(
        ~Exists(paused), pk=operation.pk, turn_at__lte=now, turn_at__gt=now - MISSED
    )
    return come.update(turn_at=None) == 1


def reserve_turn(operation: Operation, questions: int) -> datetime:
    """Take the next turn of the operation's provider: now, where nobody waits."""
    own = operation.provider.look_ups_per_second
    return reserve(operation.provider_id, spacing(own, contract_of(operation), questions))


def count_turn(operation: Operation) -> datetime:
    """Take the turn of a look-up that a person or a command asks for; returns when it would be."""
    return reserve_turn(operation, questions_of(operation, LookUp()))


def reserve(provider: UUID, takes: timedelta) -> datetime:
    with connection.cursor() as cursor:
        cursor.execute(RESERVE, {"provider": provider, "takes": takes.total_seconds()})
        row = cursor.fetchone()
    turn: datetime = row[0]
    return turn


def leave_alone(provider: Provider, retry_after_seconds: float | None) -> None:
    """Ask nothing of a provider for as long as it wants, within bounds: of any operation."""
    pause = pause_for(retry_after_seconds)
    with connection.cursor() as cursor:
        cursor.execute(PAUSE, {"provider": provider.pk, "pause": pause.total_seconds()})
    log.info("provider.left_alone", provider=provider.slug, seconds=pause.total_seconds())
