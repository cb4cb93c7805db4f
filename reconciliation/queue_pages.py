"""What the pages of the review queue show: filled by selectors, read by its templates.

Plain data, as in `pages`. Addresses and what each answers; the state of the list lies in the
address (`core.queue_views`), and `before`/`after` are places in it:

- `review`: `review.html` with {"page": ReviewPage, "now"}; target `queue`: `_queue.html`; target
  `news`: 204 while `?seen=` is the list's `seen`, else `_news.html` with {"news": "2 new, 1
  settled.", "url"} as 286, which ends the polling.
- `review_choices` (name of a filter): its options as links; to htmx `_choices.html`.
- `review_preview` (uuid of the hold): `preview.html` with {"page": Preview, "now"}; to htmx the
  cells of a row, `_preview.html`.
- `review_notes` (uuid of the hold): the thread of a case; POST says something.
- `review_claim`, `review_put_back`, `review_wake`, `review_reminded` (uuid of the hold), POST: 303
  back; to htmx 204 with `HX-Refresh`.
- `review_assign`, `review_snooze`, `review_remind`, `review_ask`, `review_answer`, `review_save`:
  GET changes nothing and shows a form, `work.html` with {"page": WorkForm, "form", "now"}, to htmx
  `_work.html` for the dialog; POST does it (303; to htmx 204 with `HX-Refresh`), refuses (422) or
  says who was first (409), with what was typed.
- `review_bulk`: GET shows the plan of what is chosen, or without a choice the reader's latest
  actions; POST confirms a plan: 303 to `review_bulk_action` (uuid), which polls itself until the
  action has ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from reconciliation.core.queue_views import Looked
from reconciliation.pages import Leg, Owner, Window
from workflows.pages import Export, Filter, Link, Pager

MOST_COLUMNS = 9  # of the list; one less where no row has an amount


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One open hold: of an operation, or of a run or event that only a person can move.

    Attributes:
        id: of the operation, run or event; `hold`: of the hold.
        reason, next_move: why it is held, and what would settle it.
        notes, last_note: how many, and the first words of the latest.
        asks: somebody was asked and has not answered.
        snoozed_until: it is in nobody's default lists until then.
    """

    url: str
    id: UUID
    hold: UUID
    title: str
    target: str
    provider: str
    reason: str
    next_move: str
    owner: Owner | None
    held_since: datetime
    due_at: datetime
    amount: str = ""  # with its currency, "EUR 1,240.00"
    window: Window | None = None
    is_late: bool = False
    is_soon: bool = False  # due within the hour
    notes: int = 0
    last_note: str = ""
    asks: bool = False
    reminded: bool = False
    snoozed_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class CountedView:
    """A tab or a view as a link; `count` as shown: "9", "1,000+"."""

    id: str
    text: str
    url: str
    current: bool
    count: str


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """What a page of the queue counts: all open holds, the oldest of them, each tab and view."""

    all_total: int
    oldest: datetime | None
    ways: tuple[CountedView, ...]


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter. `options` are links where there are few; else `choices_url` lists them."""

    name: str
    text: str
    value: str  # as shown; empty: any
    clear_url: str
    choices_url: str = ""
    options: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class ReviewPage:
    """The open holds that the reader may see, as the address asks for them.

    Attributes:
        url: of this very list, what polling asks for.
        total: how many there are in this list, `all_total` without filters and views.
        seen: changes whenever the list has changed.
        sorts: the ways to sort it.
        sorted_note: what a reader of this order should know.
    """

    rows: tuple[QueueRow, ...]
    export: Export
    looked: Looked
    url: str
    total: int
    all_total: int
    oldest: datetime | None
    seen: str
    tabs: tuple[CountedView, ...] = ()
    views: tuple[CountedView, ...] = ()
    saved: tuple[CountedView, ...] = ()
    chips: tuple[Chip, ...] = ()
    sorts: tuple[Filter, ...] = ()
    sorted_note: str = ""
    clear_url: str = ""
    save_url: str = ""
    pager: Pager = field(default=Pager())
    last_decision_at: datetime | None = None
    last_decision_by: str = ""
    focus: str = ""  # the control that was used: the focus goes back there

    @property
    def has_amounts(self) -> bool:
        return any(row.amount for row in self.rows)

    @property
    def columns(self) -> int:
        return MOST_COLUMNS if self.has_amounts else MOST_COLUMNS - 1

    @property
    def sorted_by(self) -> str:
        return next(sort.text for sort in self.sorts if sort.current)


@dataclass(frozen=True, slots=True)
class Sent:
    """One transmission in a preview: "23:58 no reply"."""

    number: int
    leg: Leg
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class Said:
    """One piece of evidence in a preview, by kind as in the vocabulary."""

    kind: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Preview:
    """A case under its row: what was intended, sent, said, and what can be done with it."""

    hold: UUID
    title: str
    url: str
    intended: str
    blocks: str
    why: str
    sent: tuple[Sent, ...]
    sent_none: str
    said_title: str
    said: tuple[Said, ...]
    said_none: str
    may_assign: bool
    may_claim: bool
    may_snooze: bool


@dataclass(frozen=True, slots=True)
class Note:
    """Something said about a case. `answer_url`: it is a question without an answer."""

    id: UUID
    state: str  # as in the vocabulary, kind `entry`
    lead: str
    text: str
    by: str
    at: datetime
    answer_url: str = ""
    you: bool = False  # it is the reader who is asked


@dataclass(frozen=True, slots=True)
class Thread:
    """What people said about a case, and what the reader may do with it short of deciding."""

    hold: UUID
    is_open: bool
    notes: tuple[Note, ...]
    token: str
    questions: int  # that nobody answered
    may_claim: bool = False
    may_assign: bool = False
    may_put_back: bool = False
    may_snooze: bool = False
    snoozed_until: datetime | None = None
    reminded_at: datetime | None = None
    older: bool = False  # there are earlier notes that are not shown
    error: str = ""
    typed: str = ""


@dataclass(frozen=True, slots=True)
class WorkForm:
    """A form of one small thing done to a case, in a dialog or alone on a page; `done` is what a
    toast says afterwards."""

    title: str
    subject: str
    url: str
    button: str
    back: str
    done: str
    lines: tuple[str, ...] = ()  # what happens
    errors: dict[str, str] = field(default_factory=dict)
    overtaken: str = ""


# --- many at once -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlannedCase:
    hold: UUID
    id: UUID  # of the operation, run or event
    title: str
    url: str
    why_not: str  # empty: it would be hit
    has: str = ""  # who has it now, where somebody does
    due_before: bool = False  # it is due before it would come back


@dataclass(frozen=True, slots=True)
class BulkPlan:
    """What would be hit, what not and why, before anything is done.

    Attributes:
        kind: as in `core.review_work`.
        holds: what is confirmed: those that would be hit, each with whose it is now, as one field
            of the form.
        lines: what happens when it is confirmed.
        chosen: how many were chosen; `more`: how many fit beside that, of which at most so many
            can be taken at once.
        all_url: the plan for all that the list shows.
        ready: what the plan needs is filled in.
    """

    kind: str
    title: str
    button: str
    hit: tuple[PlannedCase, ...]
    left_out: tuple[PlannedCase, ...]
    holds: str
    token: str
    chosen: tuple[str, ...]
    back: str
    ready: bool
    all_url: str = ""
    all_total: int = 0
    more: int = 0
    needs: str = ""  # `to`, `until` or nothing
    needs_title: str = ""
    lines: tuple[str, ...] = ()
    queues: tuple[UUID, ...] = ()  # of the chosen cases


@dataclass(frozen=True, slots=True)
class DoneCase:
    number: int
    title: str
    url: str
    state: str  # of the item
    said: str
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class BulkPage:
    """A bulk action and the result of each of its cases; `poll_url` asks what is new."""

    id: UUID
    title: str
    poll_url: str
    by: str
    made_at: datetime
    ended_at: datetime | None
    total: int
    done: int
    skipped: int
    failed: int
    rows: tuple[DoneCase, ...]
    seen: str
    pager: Pager = field(default=Pager())

    @property
    def settled(self) -> int:
        return self.done + self.skipped + self.failed

    @property
    def percent(self) -> float:
        return 100.0 * self.settled / self.total if self.total else 100.0


@dataclass(frozen=True, slots=True)
class ActionRow:
    """A bulk action in the list of them."""

    title: str
    url: str
    made_at: datetime
    ended_at: datetime | None
    total: int
    settled: int


@dataclass(frozen=True, slots=True)
class SavedRow:
    """A saved view in the list of them."""

    name: str
    url: str
    whose: str
    made_by: str
    made_at: datetime
    remove_url: str


@dataclass(frozen=True, slots=True)
class Choices:
    """The options of one filter."""

    name: str
    text: str
    options: tuple[Filter, ...]
    back: Link
    more: bool = False  # there are more than are listed
