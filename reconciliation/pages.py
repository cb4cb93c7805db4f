"""What the review pages show: filled by selectors, read by `templates/reconciliation/`.

Plain data without Django. Texts are plain text; templates escape them. States are the words of
the state enums; templates turn them into words, tones and icons. Nothing here decides: whether an
option is offered, and why not, is the core's answer, carried in `DecisionOption`.

Addresses (`urls.py`) and what each answers; one address gives the fragment to htmx and the whole
page otherwise (told apart by the `HX-Target` header):

- `review` and what is done from it: see `queue_pages`.
- `operation` (uuid): `operation.html` with {"page": OperationPage, "now"}; target `live`:
  `_refreshed.html`, or 204 when `?seen=` equals `page.seen`.
- `held_run` (uuid of the run): `held_run.html` with {"page": HeldRunPage, "now"}; the case of a run
  that is held itself. It is not polled.
- `operation_decide` and `held_run_decide` (uuid), POST of `kind note resource evidence code version
  token until`, to which htmx adds `HX-Request`:
  - recorded: 303 to the page + `#record`; to htmx `_decided.html` (`_run_decided.html`) with the
    page as it is now.
  - refused, 422 (`InvalidDecision` by its field, `NotAllowed` by `kind`): the page (htmx:
    `_decide.html`, `_run_decide.html`) with `page.decide` holding what was typed in `draft` and
    the sentences in `errors`, by field name ("" for the whole form).
  - somebody decided first, 409 (`AlreadyDecided`): the same templates with `page.overtaken` set;
    what was typed stays in `draft` when the case can still be decided.
  - not this person's, 403: `PermissionDenied`; `romulus_site.views.not_allowed` answers it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Literal
from uuid import UUID

from reconciliation.core.classify import BEFORE_SEND, Phase
from reconciliation.core.states import TransmissionState
from reconciliation.decision_pages import (
    CorrectionForm,
    DecisionForm,
    Linked,
    Overtaken,
    ProposalShown,
    Recorded,
)
from workflows.core.durations import took
from workflows.core.near_misses import Pieces
from workflows.pages import Fact, Link

# A window that ends within the hour is said to be closing: time to wake someone and decide.
CLOSING = timedelta(hours=1)


# --- parts ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Owner:
    name: str
    group: bool = False
    you: bool = False
    on_call: bool = False
    # Why they may not decide here, behind their name: "may not decide"; of a group, of all of them.
    barred: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """The time in which the provider protects us from doing the same thing twice.

    Attributes:
        started_at: when the first transmission began; None when nothing was sent.
        ends_at: `replay_not_after`; None where the provider keeps no key.
        now: the database's time at which the page was read.
        relied_on: what the contract says of its key guards a repeat; else it ends nothing.
    """

    started_at: datetime | None
    ends_at: datetime | None
    now: datetime
    relied_on: bool = True

    @property
    def state(self) -> Literal["none", "unsent", "ended", "closing", "open"]:
        if self.ends_at is None:
            return "none"
        if self.started_at is None:
            return "unsent"
        if self.ends_at <= self.now:
            return "ended"
        return "closing" if self.ends_at - self.now < CLOSING else "open"

    @property
    def left(self) -> timedelta:
        return max((self.ends_at or self.now) - self.now, timedelta())

    @property
    def passed_percent(self) -> float:
        if self.started_at is None or self.ends_at is None:
            return 0.0
        whole = (self.ends_at - self.started_at) / timedelta(seconds=1)
        passed = (self.now - self.started_at) / timedelta(seconds=1)
        return min(max(100 * passed / whole, 0.0), 100.0) if whole > 0 else 100.0

    @property
    def left_percent(self) -> float:
        return 100.0 - self.passed_percent


# --- one operation ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Leg:
    """A stretch of a transmission.

    `kind`: `done` known · `sent` the bytes left · `gap` not known · `short` not known, cut off
    early · `stop` ended here and nothing went on · `none` did not happen.
    """

    kind: Literal["done", "sent", "gap", "short", "stop", "none"]
    text: str = ""


Legs = tuple[Leg, Leg, Leg]

NEVER = Leg("none")
NO_WAY = {
    Phase.RESOLVE: "name not found",
    Phase.CONNECT: "no connection",
    Phase.TLS: "no safe connection",
}


def legs(phase: str, state: str, length: timedelta) -> Legs:
    """Return a transmission's connect, send and wait, by the `phase` it reached in `length`.

    Solid is what is known to have happened; whatever may have happened unseen is a gap.
    """
    if state == TransmissionState.SENDING:
        return (Leg("gap", "on its way"), NEVER, NEVER)
    reached = Phase(phase) if phase else Phase.RESOLVE
    if reached in BEFORE_SEND:
        kind: Literal["stop", "gap"] = "stop" if state == TransmissionState.NOT_SENT else "gap"
        return (Leg(kind, NO_WAY[reached]), Leg("none", "nothing sent"), NEVER)
    if reached is Phase.SEND:
        return (Leg("done"), Leg("short", "cut off"), NEVER)
    if reached is Phase.WAIT:
        return (Leg("done"), Leg("sent"), Leg("gap", f"{took(length)}, no answer"))
    if state == TransmissionState.UNKNOWN:
        return (
            Leg("done"),
            Leg("sent"),
            Leg("gap", f"{took(length)}, an answer that proves nothing"),
        )
    return (Leg("done"), Leg("sent"), Leg("done", f"answer in {took(length)}"))


@dataclass(frozen=True, slots=True)
class Rung:
    """One transmission.

    `reached`: how far it came, in words. `request_id`: what the provider calls it. `attempt`: the
    attempt at the step that sent it; `replays`: it was sent before. `ended_at` is None while it is
    on its way.
    """

    is_note: ClassVar[bool] = False

    number: int
    started_at: datetime
    by: str  # worker and fence
    connect: Leg
    sent: Leg
    waiting: Leg
    state: str
    outcome: str  # a few words below the state
    id: UUID
    attempt: UUID
    reached: str
    ended_at: datetime | None = None
    request_id: str = ""
    replays: bool = False


@dataclass(frozen=True, slots=True)
class RungNote:
    """What happened between transmissions: a hand-over, or the hold (`last`)."""

    is_note: ClassVar[bool] = True

    at: datetime
    kind: str
    state: str
    text: str
    last: bool = False


@dataclass(frozen=True, slots=True)
class EvidenceCard:
    """What one source said. `stale`: too old to decide on. `asking`: it is being asked again."""

    id: UUID
    kind: str
    title: str  # what was asked
    source: str
    text: str
    observed_at: datetime
    can_settle: str  # what this source is able to prove
    stale: bool = False
    asking: bool = False
    facts: tuple[Fact, ...] = ()
    raw: str = ""  # the redacted answer, as it came


@dataclass(frozen=True, slots=True)
class Side:
    """One field of what was intended and of a record, cut where the two differ."""

    name: str
    meant: Pieces
    shows: Pieces
    same: bool


@dataclass(frozen=True, slots=True)
class Sides:
    """A provider's record beside what was intended; `differ` of its fields do, and come first."""

    resource: str
    observed_at: datetime
    fields: tuple[Side, ...]
    differ: int
    dashboard_url: str = ""  # the provider's own page of it; empty where none is set up


@dataclass(frozen=True, slots=True)
class ContractCard:
    """What the provider documents, in the version that the operation was sent under."""

    version: str
    window: Window
    before: str  # what a send does while protection lasts; empty where none is relied on
    after: str  # what it does after that
    advice: str  # one sentence, when the window is closing, over, missing or not relied on
    facts: tuple[Fact, ...] = ()
    reviewed: str = ""
    runbook_url: str = ""  # empty for who may not see the provider


@dataclass(frozen=True, slots=True)
class BlockedStep:
    """A step that waits for this operation; the first is the operation's own."""

    name: str
    note: str
    here: bool = False


@dataclass(frozen=True, slots=True)
class RecordEntry:
    """A line of the record; `kind` and `state` as in the vocabulary of the console."""

    at: datetime
    kind: str
    state: str
    lead: str
    text: str
    by: str


# --- the cases ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OperationPage:
    """One intended effect: what was intended, sent, said; what can be decided; the record."""

    id: UUID
    title: str
    lede: str
    state: str
    outcome_unknown: bool  # held, and nobody knows whether it took effect
    provider: str
    run: Link
    position: str  # "step 4 of 7"
    started_by: Link | None  # the run that has started its run
    approval_url: str  # of what people have approved of it; empty where nobody was asked
    intended: str  # one sentence
    intended_facts: tuple[Fact, ...]
    contract: ContractCard
    seen: str  # changes whenever anything that a decision rests on has changed
    owner: Owner | None = None
    held_since: datetime | None = None
    due_at: datetime | None = None
    is_late: bool = False
    request: str = ""  # as prepared, redacted; empty when the reader may not see payloads
    sent_summary: str = ""
    sent_note: str = ""  # what all sends had in common: "Every send carried the same key …"
    ladder: tuple[Rung | RungNote, ...] = ()
    says: str = ""  # what the evidence comes to, in one sentence
    evidence: tuple[EvidenceCard, ...] = ()
    sides: tuple[Sides, ...] = ()  # the provider's records beside what was intended
    asks_again_at: datetime | None = None  # when Romulus asks the provider next by itself
    provider_url: str = ""  # empty for who may not see the provider
    result_url: str = ""  # the provider's own page of what it made
    blocks: tuple[BlockedStep, ...] = ()
    people: tuple[tuple[str, Owner], ...] = ()  # role and who
    record: tuple[RecordEntry, ...] = ()
    decide: DecisionForm | None = None  # None: nothing to decide, or not by this reader
    not_yours: str = ""  # why the reader may not decide an open case
    decision: Recorded | None = None  # the latest
    overtaken: Overtaken | None = None
    proposal: ProposalShown | None = None
    correction: CorrectionForm | None = None
    linked: tuple[Linked, ...] = ()
    irreversible: bool = False
    takes_two: bool = False  # what moves it takes two people
    is_asking: bool = False  # somebody has asked the provider, and no answer is there yet
    first_asked: str = ""  # what it is asked for the first time
    is_final: bool = False

    @property
    def is_held(self) -> bool:
        return self.held_since is not None

    @property
    def poll_seconds(self) -> int:
        """How often the page asks for news: often while an answer is awaited."""
        return 3 if self.is_asking else 30


@dataclass(frozen=True, slots=True)
class HeldRunPage:
    """A run that is held itself, where no operation is: why, what can be decided, the record."""

    id: UUID
    title: str
    lede: str
    state: str  # of the run
    run: Link
    position: str
    started_by: Link | None
    facts: tuple[Fact, ...]
    owner: Owner | None = None
    held_since: datetime | None = None
    due_at: datetime | None = None
    is_late: bool = False
    blocks: tuple[BlockedStep, ...] = ()
    record: tuple[RecordEntry, ...] = ()
    decide: DecisionForm | None = None
    not_yours: str = ""
    decision: Recorded | None = None
    overtaken: Overtaken | None = None
    proposal: ProposalShown | None = None
    correction: CorrectionForm | None = None

    @property
    def is_held(self) -> bool:
        return self.held_since is not None
