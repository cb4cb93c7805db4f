"""The same small thing done to many held cases: assigned, snoozed, reminded of, looked up again.

The set is stored when it is confirmed, and carried out in the background item by item: each effect
and what is said of it are one commit, so that a process that dies in between is followed by another
that goes on where it ended (promise P10: the sweep finds what was left). Rights are those at the
moment of each item. Nothing here decides a case.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from reconciliation import access
from reconciliation.core.errors import CaseMoved, InvalidRequest
from reconciliation.core.rehearsals import NAME as REHEARSALS
from reconciliation.core.review_work import BulkKind, ItemState, needs_note, why_not_look_up
from reconciliation.core.states import EvidenceKind, HoldState
from reconciliation.models import BulkAction, BulkItem, Evidence, Hold
from reconciliation.services.asking import ask_for
from reconciliation.services.assigning import assign
from reconciliation.services.audit import actor_of, add_entry
from reconciliation.services.reconcile import can_be_asked
from reconciliation.services.snoozing import ensure_soon, remind, snooze
from reconciliation.services.telling import tell_taken_together
from workflows.failpoints import failpoint
from workflows.services import hints

log = structlog.get_logger(__name__)

TASK = "reconciliation.tasks.carry_out_bulk"
MOST = 500  # cases in one action: a page of results that people can read, an hour of asking at most
# Of one message: others wait for the same process, and a look-up takes up to its timeout.
BATCH = 20
# How long a process has an action for itself after each item: longer than any look-up takes.
TAKEN = timedelta(minutes=3)
REFUSALS = (PermissionDenied, InvalidRequest, CaseMoved)


@dataclass(frozen=True)
class Wanted:
    """What is to be done to each case. `to`: whom it is assigned to; `until`: snoozed until, or
    reminded at."""

    kind: BulkKind
    to: User | None = None
    until: datetime | None = None


def confirm(
    wanted: Wanted,
    holds: Sequence[UUID],
    by: User,
    token: UUID,
    *,
    seen: Mapping[UUID, int | None] | None = None,
) -> BulkAction:
    """Store the action and its set, and have it carried out.

    Args:
        holds: the cases of the plan that was shown, in its order; at most `MOST`.
        token: of the plan: confirming it twice returns what the first time stored.
        seen: the ID of whose each case was in the plan, by default whose it is now. Who comes to
            one after that keeps it.

    Raises:
        InvalidRequest: there is no case, or what is wanted lacks something; names the field.
    """
    before = BulkAction.objects.filter(token=token, by=by).first()
    if before is not None:
        return before
    check(wanted, holds, by)
    visible = access.seen_by(by, holds)
    left = [hold for hold in holds if hold in visible]
    failpoint("before_bulk")
    try:
        with transaction.atomic():
            action = BulkAction.objects.create(
                kind=wanted.kind, by=by, token=token, to=wanted.to, until=wanted.until
            )
            had = whose_now(left) if seen is None else seen
            BulkItem.objects.bulk_create(
                BulkItem(action=action, hold_id=hold, number=number, had=had[hold])
                for number, hold in enumerate(left, start=1)
            )
            detail = {"kind": str(wanted.kind), "cases": len(left)}
            add_entry(actor_of(by), "confirmed for many", f"bulk:{action.pk}", detail)
    except IntegrityError as error:
        stored = BulkAction.objects.filter(token=token, by=by).first()
        if stored is None:
            raise InvalidRequest(
                "", "This plan was used by somebody else. Make it anew."
            ) from error
        return stored
    failpoint("after_bulk")
    hints.send(TASK, action.pk)
    log.info("bulk.confirmed", bulk=str(action.pk), kind=str(wanted.kind), cases=len(left))
    return action


def whose_now(holds: Collection[UUID]) -> dict[UUID, int | None]:
    return dict(Hold.objects.filter(pk__in=holds).values_list("pk", "assignee"))


def check(wanted: Wanted, holds: Sequence[UUID], by: User) -> None:
    if wanted.kind is BulkKind.ASSIGN and wanted.to is None:
        raise InvalidRequest("to", "Say whom they go to.")
    if wanted.kind in (BulkKind.SNOOZE, BulkKind.REMIND):
        if wanted.until is None:
            raise InvalidRequest("until", "Say until when.")
        ensure_soon(wanted.until)
    if not 0 < len(set(holds)) == len(holds) <= MOST:
        raise InvalidRequest("", f"Choose between one and {MOST} cases.")
    if not access.seen_by(by, holds):
        raise InvalidRequest("", "None of these cases is there any more.")


# --- carrying it out --------------------------------------------------------------------------


def hint_open_actions() -> int:
    """A duty of the sweep: hint at actions that nobody is at."""
    found = list(free_actions().order_by("made_at").values_list("pk", flat=True)[:BATCH])
    for action in found:
        hints.send(TASK, action)
    return len(found)


def free_actions() -> QuerySet[BulkAction]:
    return BulkAction.objects.filter(Q(taken_until=None) | Q(taken_until__lte=Now()), ended_at=None)


def carry_out(action_id: UUID) -> None:
    """Do the next items of an action, and tell of the rest; nothing when another process is at it.

    May be called twice, late or never: what was done is not done again.
    """
    taken = free_actions().filter(pk=action_id).update(taken_until=Now() + TAKEN)
    if not taken:
        return
    action = load(action_id)
    for item in items_left(action):
        # Read anew: whose rights they are is remembered with the person that was loaded.
        carry_out_item(load(action_id), item)
        BulkAction.objects.filter(pk=action.pk).update(taken_until=Now() + TAKEN)
    if items_left(action):
        BulkAction.objects.filter(pk=action.pk).update(taken_until=None)
        hints.send(TASK, action.pk)
        return
    end(action)


def end(action: BulkAction) -> None:
    """All was looked at: say so, and tell those whose cases went to somebody else."""
    failpoint("before_bulk_end")
    with transaction.atomic():
        under_way = BulkAction.objects.filter(pk=action.pk, ended_at=None)
        if not under_way.update(ended_at=Now(), taken_until=None):
            return
        for had in User.objects.filter(pk__in=taken_by(action.pk).values("had")).order_by("pk"):
            tell_taken_together(action, had)
    failpoint("after_bulk_end")
    log.info("bulk.ended", bulk=str(action.pk))


def taken_by(action_id: UUID) -> QuerySet[BulkItem]:
    """The cases that an action gave to another than had them; what is only rehearsed is nobody's
    loss."""
    given = BulkItem.objects.filter(action=action_id, state=ItemState.DONE, said=ASSIGNED)
    others = given.exclude(had=None).exclude(had=F("action__by"))
    return others.exclude(hold__tenant__slug=REHEARSALS)


def load(action_id: UUID) -> BulkAction:
    return BulkAction.objects.select_related("by", "to").get(pk=action_id)


def items_left(action: BulkAction) -> list[BulkItem]:
    left = action.items.filter(state=ItemState.PENDING).select_related(
        "hold__queue", "hold__operation__provider", "hold__operation__contract_version"
    )
    return list(left.order_by("number")[:BATCH])


def carry_out_item(action: BulkAction, item: BulkItem) -> None:
    """Do one item and say what came of it; one that breaks does not keep the others waiting."""
    failpoint("before_bulk_item")
    try:
        if action.kind == BulkKind.LOOK_UP:
            # No transaction is held while the provider answers; asking twice changes nothing.
            settle(item, ItemState.DONE, look_up(action, item))
        else:
            do_once(action, item)
    except REFUSALS as error:
        settle(item, ItemState.SKIPPED, str(error))
    except Exception as error:
        log.exception("bulk.item_failed", bulk=str(action.pk), hold=str(item.hold_id))
        settle(item, ItemState.FAILED, f"It could not be done ({type(error).__name__}).")
    failpoint("after_bulk_item")


def do_once(action: BulkAction, item: BulkItem) -> None:
    """The effect and what is said of it are one commit, under the lock of the item."""
    with transaction.atomic():
        pending = BulkItem.objects.select_for_update().filter(pk=item.pk, state=ItemState.PENDING)
        if pending.first() is None:
            return  # a process that was thought dead has done it
        settle(item, ItemState.DONE, DOES[BulkKind(action.kind)](action, item))


def settle(item: BulkItem, state: ItemState, said: str) -> bool:
    """False when it was settled before; what was said then stays."""
    pending = BulkItem.objects.filter(pk=item.pk, state=ItemState.PENDING)
    return pending.update(state=state, said=said[:500], ended_at=Now()) == 1


BY_MANY = "Handed over together with other cases."
ASSIGNED = "Assigned."


def assign_it(action: BulkAction, item: BulkItem) -> str:
    to = action.to
    assert to is not None  # `confirm` checks it
    note = BY_MANY if needs_note(item.had, action.by.pk, to.pk) else ""
    changed = assign(item.hold_id, to, action.by, seen=item.had, note=note, bulk=action.pk)
    return ASSIGNED if changed else "It was theirs already."


def snooze_it(action: BulkAction, item: BulkItem) -> str:
    assert action.until is not None  # `confirm` checks it
    changed = snooze(item.hold_id, action.by, action.until, bulk=action.pk)
    return "Snoozed." if changed else "It was snoozed until then already."


def remind_it(action: BulkAction, item: BulkItem) -> str:
    assert action.until is not None  # `confirm` checks it
    changed = remind(item.hold_id, action.by, action.until)
    return "You will be reminded." if changed else "You are reminded then already."


def look_up(action: BulkAction, item: BulkItem) -> str:
    hold = item.hold
    operation = hold.operation
    refused = why_not_look_up(
        is_open=hold.state == HoldState.OPEN,
        of_a_write=operation is not None,
        can_be_asked=operation is not None and can_be_asked(operation),
        may_decide=access.may_decide(action.by, hold),
    )
    if refused or operation is None:
        raise CaseMoved(refused)
    if not ask_for(operation, action.by):
        return "It was asked a moment ago, or is settled by now."
    hold.refresh_from_db(fields=["state"])
    if hold.state != HoldState.OPEN:
        return "Asked; proof settled it."
    said = Evidence.objects.filter(operation=operation).order_by("-recorded_at", "-pk").first()
    return SAID.get(said.kind if said else "", "Asked; it settles nothing.")


# What a provider that was asked has said, where that leaves the case open.
SAID: dict[str, str] = {
    EvidenceKind.UNAVAILABLE: "Asked; no usable answer came. The case says why.",
    EvidenceKind.ABSENCE: "Asked; it shows no record of it, which proves nothing here.",
    EvidenceKind.LOOKUP: "Asked; it shows a record, and the case is not settled. It says why.",
    EvidenceKind.CONFLICT: "Asked; what it shows does not fit what was meant. See the case.",
}


DOES: dict[BulkKind, Callable[[BulkAction, BulkItem], str]] = {
    BulkKind.ASSIGN: assign_it,
    BulkKind.SNOOZE: snooze_it,
    BulkKind.REMIND: remind_it,
}
