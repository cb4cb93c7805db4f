"""A queue's rota: who is on call now, and what an administrator makes of it, on record."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from reconciliation import access
from reconciliation.core.rota import Dated, Rota, Weekly, on_call
from reconciliation.models import Shift
from reconciliation.services.audit import actor_of, add_entry


def rota_of(shifts: Iterable[Shift]) -> Rota:
    rules = [shift.rule for shift in shifts]
    return Rota(
        weekly=tuple(rule for rule in rules if isinstance(rule, Weekly)),
        dated=tuple(rule for rule in rules if isinstance(rule, Dated)),
    )


def on_call_at(shifts: Collection[Shift], now: datetime) -> list[User]:
    """The active people who are on call by `shifts` of one queue, which come with their people."""
    people = {shift.person_id: shift.person for shift in shifts}
    named = (people[pk] for pk in on_call(rota_of(shifts), now))
    return [person for person in named if person.is_active]


def problem_of(shift: Shift) -> str:
    """Why its person would not be told, or could do nothing; empty when there is nothing."""
    if access.may_answer_for(shift.person, shift.queue):
        return ""
    return (
        f"{shift.person.get_username()} may not see and decide the cases of {shift.queue}, and "
        "would be passed over. Make them an owner of it, or give them these rights, first."
    )


@transaction.atomic
def save_shift(shift: Shift, *, by: User) -> None:
    before = Shift.objects.select_related("queue", "person").filter(pk=shift.pk).first()
    shift.save()
    note(shift, by, before=said_of(before), after=said_of(shift))


@transaction.atomic
def delete_shift(shift: Shift, *, by: User) -> None:
    note(shift, by, before=said_of(shift), after=None)
    shift.delete()


def said_of(shift: Shift | None) -> str | None:
    return f"{shift.queue.slug}: {shift}" if shift else None


def note(shift: Shift, by: User, **detail: Any) -> None:
    add_entry(actor_of(by), "set rota", f"queue:{shift.queue.slug}", detail)
