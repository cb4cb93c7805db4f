"""What a run page shows of operations and holds: registered with `workflows` when ready."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import cached_property
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone

from reconciliation import access
from reconciliation.core.facts import CONFLICT_LATER
from reconciliation.core.states import EvidenceKind, HoldState, OperationState, TransmissionState
from reconciliation.models import (
    AuditEntry,
    Decision,
    DispatchStop,
    Evidence,
    Hold,
    Operation,
    Provider,
    ReviewQueue,
    Transmission,
)
from reconciliation.pages import RecordEntry
from reconciliation.selectors.case import Row, newest_first
from reconciliation.selectors.queue import url_of
from reconciliation.selectors.record import (
    decision_entry,
    evidence_entry,
    hold_entries,
    intended,
    sending,
    settled,
)
from reconciliation.selectors.words import (
    DECISIONS,
    clock,
    give_people,
    name_of,
    next_on_call,
    owner_of,
    people_of,
    sentence_of,
)
from reconciliation.services.dispatch import stops_in
from workflows.core.durations import took
from workflows.core.timeline import Lane, Span
from workflows.core.words import listed, who
from workflows.models import Run, Worker
from workflows.pages import CheckedCause, Link, LogEntry
from workflows.selectors import named
from workflows.selectors.run_parts import Deed, RunParts
from workflows.together import together

OPERATIONS_SHOWN = 50
# What people do to runs (workflows.services.stopping, migrations), as the log tells it. Of a
# cancellation the run tells by itself; only the reason is here.
CANCELLED = "run cancelled"
STOPS = {
    "run paused": ("paused", "Paused"),
    "run resumed": ("resumed", "Resumed"),
    "run migrated": ("migrated", "Moved to a later version"),
}
NOT_BY_WAITING = "Waiting longer or restarting workers will not help."


@dataclass(frozen=True)
class Rows:
    """What the ledger has of one run, in the order in which it came."""

    run: Run
    operations: Sequence[Operation]
    transmissions: Sequence[Transmission]
    evidence: Sequence[Evidence]
    holds: Sequence[Hold]
    decisions: Sequence[Decision]
    stops: Sequence[AuditEntry]
    workers: Mapping[UUID, str]
    switches: Sequence[DispatchStop]  # over the operation that the run is at
    answering: Sequence[User]  # for that operation's provider
    zone: tzinfo  # in which times are said
    now: datetime

    @property
    def unsettled(self) -> Operation | None:
        """The operation that the run is at, if it is not settled."""
        return unsettled_among(self.operations)

    @cached_property
    def open_hold(self) -> Hold | None:
        """The one that the run waits for."""
        opened = (hold for hold in self.holds if hold.state == HoldState.OPEN)
        return next((hold for hold in opened if hold.reason != CONFLICT_LATER), None)

    def sends_of(self, operation: Operation) -> list[Transmission]:
        return [row for row in self.transmissions if row.operation_id == operation.pk]

    def evidence_of(self, operation: Operation) -> list[Evidence]:
        return [row for row in self.evidence if row.operation_id == operation.pk]


def run_parts(run: Run, user: User | None, *, before: datetime | None, zone: tzinfo) -> RunParts:
    """What `user`, who may see the run, sees of its operations and holds; two queries, or one."""
    now = timezone.now()
    rows = load(run, zone, now)
    past = rows if before is None else load(run, zone, now, before)
    hold = rows.open_hold
    owner = owner_of(hold, user, now) if hold else None
    return RunParts(
        lanes=lanes(rows),
        spans=hold_spans(rows),
        urls={row.step: reverse("operation", args=[row.pk]) for row in rows.operations},
        deeds=(*decided(rows), *stopped(rows)),
        log=(*(as_log(entry) for entry in entries(past)), *stop_entries(past)),
        owner=owner.name if owner else owner_of_dispatch(rows),
        helps=f"{sentence_of(hold).settles} {NOT_BY_WAITING}" if hold else "",
        links=links(rows, user),
        causes=causes(rows),
        why_paused=reason_of(rows, "run paused"),
        why_cancelled=reason_of(rows, CANCELLED),
        turns=tuple(turns(rows, now)),
        seen=repr([each.state for each in rows.operations] + [len(rows.evidence), len(rows.holds)]),
    )


def turns(rows: Rows, now: datetime) -> Iterator[datetime]:
    """When a hold is past due, somebody else is on call, or a switch ends."""
    yield from (stop.until for stop in rows.switches if stop.until is not None)
    if rows.open_hold is None:
        return
    yield rows.open_hold.due_at
    change = next_on_call(rows.open_hold, now)
    if change is not None:
        yield change


def load(run: Run, zone: tzinfo, now: datetime, before: datetime | None = None) -> Rows:
    """The newest rows of the run, or those from before `before`."""

    def past(rows: QuerySet[Row], time: str) -> QuerySet[Row]:
        return rows if before is None else rows.filter(**{f"{time}__lt": before})

    operations = past(run.operations.all(), "created_at")
    sent = past(Transmission.objects.filter(operation__run=run), "started_at")
    seen = past(Evidence.objects.filter(operation__run=run), "observed_at")
    held = past(Hold.objects.filter(run=run), "opened_at")
    decided = past(Decision.objects.filter(hold__run=run), "at")
    providers = Provider.objects.filter(pk__in=run.operations.order_by().values("provider"))
    answering = ReviewQueue.owners.through.objects.filter(
        reviewqueue__in=providers.values("default_queue"), user__is_active=True
    )
    lists = together(
        newest_first(operations.select_related("provider"), "created_at", OPERATIONS_SHOWN),
        newest_first(sent, "started_at"),
        newest_first(seen.select_related("operation__provider"), "recorded_at"),
        newest_first(held.select_related("queue", "assignee"), "opened_at"),
        newest_first(decided, "at"),
        newest_first(past(stops_of(run), "at"), "seq"),
        Worker.objects.filter(pk__in=sent.order_by().values("worker")),
        stops_in(run.tenant_id, providers.values("pk")),
        answering.select_related("user"),
        *people_of(held),
    )
    shown, transmissions, evidence, holds, decisions, stops = (rows[::-1] for rows in lists[:6])
    known, switches, answer, owners, shifts = lists[6:]
    give_people(holds, owners, shifts)
    of_id = {operation.pk: operation for operation in shown}
    for hold in holds:  # why one was closed is told from these
        hold.run, hold.operation = run, of_id.get(hold.operation_id) or hold.operation
    for operation in shown:
        operation.run = run
    unsettled = unsettled_among(shown)
    return Rows(
        run=run,
        operations=shown,
        transmissions=transmissions,
        evidence=evidence,
        holds=holds,
        decisions=decisions,
        stops=stops,
        workers=named((row.worker for row in transmissions), known),
        switches=[each for each in switches if unsettled and concerns(each, unsettled)],
        answering=[
            each.user
            for each in answer
            if unsettled and each.reviewqueue_id == unsettled.provider.default_queue_id
        ],
        zone=zone,
        now=now,
    )


def unsettled_among(operations: Sequence[Operation]) -> Operation | None:
    found = [row for row in operations if not OperationState(row.state).is_settled]
    return found[-1] if found else None


def concerns(stop: DispatchStop, operation: Operation) -> bool:
    """Whether a switch of the operation's tenant, or of all, covers it."""
    of_provider = stop.provider_id in (None, operation.provider_id)
    return of_provider and stop.action in ("", operation.action)


def stops_of(run: Run) -> QuerySet[AuditEntry]:
    return AuditEntry.objects.filter(object=f"run:{run.pk}", verb__in=[CANCELLED, *STOPS])


def reason_of(rows: Rows, verb: str) -> str:
    """Why somebody did that last."""
    reasons = [row.detail.get("reason", "") for row in rows.stops if row.verb == verb]
    return str(reasons[-1]) if reasons else ""


# --- the timeline -----------------------------------------------------------------------------


def lanes(rows: Rows) -> dict[str, list[Lane]]:
    below: dict[str, list[Lane]] = {}
    for operation in rows.operations:
        below.setdefault(operation.step, []).append(lane(rows, operation))
    return below


def lane(rows: Rows, operation: Operation) -> Lane:
    sends = rows.sends_of(operation)
    spans = [*unknown_span(rows, operation, sends), *(send_span(operation, row) for row in sends)]
    return Lane(
        operation.summary,
        tuple(spans),
        kind="operation",
        state=operation.state,
        url=reverse("operation", args=[operation.pk]),
        child=True,
    )


def send_span(operation: Operation, row: Transmission) -> Span:
    after = f" after {took(row.ended_at - row.started_at)}" if row.ended_at else ""
    word = row.state.replace("_", " ")
    return Span(
        paint_of(row),
        row.started_at,
        row.ended_at,
        f"Send {row.number}: {word}{after}",
        label=str(row.number),
        url=f"{reverse('operation', args=[operation.pk])}#sent",
    )


def paint_of(row: Transmission) -> str:
    """Solid is what we know: nothing is known of a send whose worker went quiet in the middle."""
    if row.state == TransmissionState.NOT_SENT:
        return "none"
    return "ink" if row.phase or row.state == TransmissionState.SENDING else "unknown"


def unknown_span(rows: Rows, operation: Operation, sends: list[Transmission]) -> list[Span]:
    """From the first send without a usable answer until it is known what became of it."""
    lost = [row for row in sends if row.state == TransmissionState.UNKNOWN]
    if not lost:
        return []
    begin = lost[0].ended_at or lost[0].started_at
    proofs = [row.observed_at for row in rows.evidence_of(operation) if row.completes]
    ends = [at for at in (*proofs, operation.settled_at) if at is not None and at >= begin]
    hold = rows.open_hold
    is_late = hold is not None and hold.operation == operation and hold.due_at <= rows.now
    paint, late = ("late", ", past due") if is_late and not ends else ("unknown", "")
    title = f"Outcome unknown from {clock(begin, rows.zone)}{late}"
    return [Span(paint, begin, min(ends, default=None), title, working=False)]


def hold_spans(rows: Rows) -> dict[str, list[Span]]:
    """Holds in the row of the step that they are at."""
    step_of = {operation.pk: operation.step for operation in rows.operations}
    spans: dict[str, list[Span]] = {}
    for hold in rows.holds:
        step = step_of.get(hold.operation_id, rows.run.step) if hold.operation_id else rows.run.step
        title = f"Held since {clock(hold.opened_at, rows.zone)}"
        span = Span(
            "hold", hold.opened_at, hold.closed_at, title, "held", url_of(hold), working=False
        )
        spans.setdefault(step, []).append(span)
    return spans


# --- what people did --------------------------------------------------------------------------


def decided(rows: Rows) -> Iterator[Deed]:
    urls = {hold.pk: url_of(hold) for hold in rows.holds}
    for row in rows.decisions:
        url = urls.get(row.hold_id, "")
        text = DECISIONS.get(row.kind, row.kind)
        yield Deed(row.by_name, row.at, "decided", text, url)
        if row.second_name:
            yield Deed(row.second_name, row.at, "confirmed", text, url)


def stopped(rows: Rows) -> Iterator[Deed]:
    for row in rows.stops:
        text = row.detail.get("reason", "") or row.verb
        yield Deed(who(row.actor), row.at, row.verb.removeprefix("run "), text)


# --- the log ----------------------------------------------------------------------------------


def entries(rows: Rows) -> Iterator[RecordEntry]:
    for operation in rows.operations:
        yield intended(operation)
        yield from settled(operation)
    for row in rows.transmissions:
        yield from sending(row, rows.workers.get(row.worker, ""))
    for found in rows.evidence:
        yield evidence_entry(found, found.operation.provider.name)
    yield from hold_entries(rows.holds)
    for decision in rows.decisions:
        yield decision_entry(decision, rows.zone)


def as_log(entry: RecordEntry) -> LogEntry:
    return LogEntry(entry.at, entry.kind, entry.state, f"{entry.lead} {entry.text}", entry.by)


def stop_entries(rows: Rows) -> Iterator[LogEntry]:
    yield from (stop_entry(row) for row in rows.stops if row.verb in STOPS)


def stop_entry(row: AuditEntry) -> LogEntry:
    state, text = STOPS[row.verb]
    if row.verb == "run migrated":
        text = (
            "Moved from version {from_version}, step {from_step}, to version {to_version}, step "
            "{to_step}"
        ).format(**row.detail)
    reason = row.detail.get("reason", "")
    return LogEntry(row.at, "stop", state, f"{text}: {reason}" if reason else text, who(row.actor))


# --- why it is not moving ---------------------------------------------------------------------


def links(rows: Rows, user: User | None) -> tuple[Link, ...]:
    hold = rows.open_hold
    if hold is None:
        open_ones = [row for row in rows.operations if not OperationState(row.state).is_settled]
        return tuple(
            Link("Open the operation", reverse("operation", args=[row.pk]))
            for row in open_ones[-1:]
        )
    if hold.operation_id is not None:
        return (Link("Open the held operation", url_of(hold)),)
    visible = user is None or access.visible_holds(user).filter(pk=hold.pk).exists()
    return (Link("Open the held step", url_of(hold)),) if visible else ()


def causes(rows: Rows) -> tuple[CheckedCause, ...]:
    found = [mismatch(rows)]
    hold = rows.open_hold
    if hold is not None:
        found.append(CheckedCause("Held", "is", held_text(hold, rows.zone)))
    if rows.unsettled is not None:
        found.append(dispatch(rows, rows.unsettled))
    return tuple(found)


def held_text(hold: Hold, zone: tzinfo) -> str:
    what = f"operation …{hold.operation_id.hex[-6:]}" if hold.operation_id else "this step"
    return f"yes: {what} waits for a decision, due {clock(hold.due_at, zone)}"


def mismatch(rows: Rows) -> CheckedCause:
    differing = [row for row in rows.evidence if row.kind == EvidenceKind.CONFLICT]
    if not differing:
        return CheckedCause("Mismatch", "no", "no: no provider record disagrees")
    is_cause = rows.open_hold is not None and rows.open_hold.reason == "conflict"
    text = f"a record of {differing[-1].operation.provider.name} does not fit what was intended"
    return CheckedCause("Mismatch", "is" if is_cause else "maybe", text)


def owner_of_dispatch(rows: Rows) -> str:
    """Who answers for a provider that nothing is sent to; empty while dispatch is on."""
    if rows.unsettled is None or not rows.switches:
        return ""
    return listed([name_of(user) for user in rows.answering])


def dispatch(rows: Rows, operation: Operation) -> CheckedCause:
    """Whether the provider is sent anything now; else by whom, since when and why not."""
    name = operation.provider.name
    if not rows.switches:
        return CheckedCause("Dispatch", "no", f"no: dispatch to {name} is on")
    waits = (rows.run.failure or {}).get("reason") == "dispatch"
    text = f"{'yes' if waits else 'also'}: {said_of(rows.switches[0], name, rows.zone)}"
    return CheckedCause("Dispatch", "is" if waits else "maybe", text)


def said_of(stop: DispatchStop, provider: str, zone: tzinfo) -> str:
    what = f"to {provider}" if stop.covers == provider else f"of {stop.covers}"
    until = f", until {clock(stop.until, zone)}" if stop.until else ""
    return (
        f"dispatch {what} is {stop.state}{until}, by {who(stop.by)} since {clock(stop.at, zone)}: "
        f"{stop.reason}"
    )
