"""What the pages about events and waits show: filled by selectors, read by `templates/workflows/`.

Plain data without Django, as in `workflows.pages`. What a sender wrote is plain text here and is
escaped by the templates, like everything.

Addresses (`urls.py`) and what each answers:

- `events` (`?view=all`, `?state=`, `?source=` (slug), `?range=` (`1h`, `24h`, `7d`),
  `?before=`/`?after=`; `?wbefore=`/`?wafter=` page the waits; `?wait=&event=` choose what is
  compared): `events.html` with {"page": EventsPage, "now"}; target `inbox`: `_inbox.html`; target
  `waits`: `_waits.html`; target `near`: `_near.html`.
- `event` (uuid): `event.html` with {"page": EventPage, "now"}; 404 for what may not be seen.
- `event_attach`, `event_dismiss`, `event_restore`, `event_replay` (uuid), for those who may control
  the tenant's runs, else 404: GET asks, `event_action.html` with {"page": Question, "now"}, to
  htmx `_event_action.html`, which `event.html` shows in a dialog. POST of `reason`, and of `wait`
  or `run` for `event_attach`: done, 303 to the event, to htmx 204 with `HX-Redirect`; something is
  missing, 422, or somebody was first, 409: the same templates; what was typed stays.
- `event_send`, for those who may send events of a source: GET asks, POST sends; the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from workflows.core.near_misses import Pieces
from workflows.pages import ControlLink, Fact, Filter, Link, LogEntry, Pager

# --- the list ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tally:
    """How many events of one kind somebody may have to see to."""

    state: str
    count: str  # "38", "10,000 or more"
    meaning: str
    url: str
    current: bool


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event in the list. `went`: what became of it, in a few words."""

    id: UUID
    url: str
    type: str
    correlation: str
    source: str
    state: str  # or `ambiguous`, `dismissed`
    received_at: datetime
    went: str
    run: Link | None = None
    duplicates: int = 0


@dataclass(frozen=True, slots=True)
class WaitRow:
    """One open wait. `close`: how many events came close, as far as was looked."""

    id: UUID
    types: str
    correlation: str
    run: Link
    step: str
    started_at: datetime
    deadline: datetime | None
    needed: int = 1
    got: int = 0
    close: int = 0
    close_url: str = ""


@dataclass(frozen=True, slots=True)
class Compared:
    """One field of a wait and an event, side by side."""

    name: str
    expected: Pieces
    said: Pieces
    same: bool
    fit: str  # "same", "differs", "inside"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A wait and an event that came close to it."""

    fields: tuple[Compared, ...]
    lead: str
    text: str
    event: Link
    run: Link
    attach_url: str = ""  # empty for who may not


@dataclass(frozen=True, slots=True)
class Near:
    """An entry of the list of what came close; `url` compares it."""

    type: str
    correlation: str
    note: str
    url: str
    current: bool


@dataclass(frozen=True, slots=True)
class Waits:
    rows: tuple[WaitRow, ...]
    total: str
    pager: Pager


@dataclass(frozen=True, slots=True)
class EventsPage:
    """Events and waits of the tenants that the reader may see.

    Attributes:
        url: this very list, filters included.
        filtered: rows are hidden by a filter.
        may_send: there is an internal source that the reader may send events of.
    """

    rows: tuple[EventRow, ...]
    tally: tuple[Tally, ...]
    views: tuple[Filter, ...]
    sources: tuple[Filter, ...]
    pager: Pager
    url: str
    waits: Waits
    near: tuple[Near, ...] = ()
    comparison: Comparison | None = None
    filtered: bool = False
    may_send: bool = False
    ranges: tuple[Filter, ...] = ()


# --- one event --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Body:
    """What was received. `text` is empty where it may not be shown; `note` says why."""

    content_type: str
    size: int
    encoding: str = ""
    text: str = ""
    note: str = ""
    is_json: bool = False


@dataclass(frozen=True, slots=True)
class GivenTo:
    """A wait that got the event; `by` attached it by hand."""

    run: Link
    step: str
    state: str  # of the wait
    at: datetime
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class EventPage:
    id: UUID
    title: str
    state: str  # or `ambiguous`, `dismissed`
    lead: str
    helps: str
    facts: tuple[Fact, ...]
    source: str
    event_id: str
    correlation: str
    received_at: datetime
    duplicates: int
    last_duplicate_at: datetime | None
    body: Body
    given: tuple[GivenTo, ...] = ()
    candidates: tuple[WaitRow, ...] = ()  # open waits that could take it
    comparisons: tuple[Comparison, ...] = ()
    actions: tuple[ControlLink, ...] = ()
    record: tuple[LogEntry, ...] = ()
    purged_at: datetime | None = None


# --- what is asked ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WaitChoice:
    """A wait that an event may be attached to. Nothing is chosen for anybody."""

    id: UUID
    label: str
    note: str
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked before something is done to an event.

    Attributes:
        waits: among which one chooses; `other` offers to name a run instead.
        typed: what was typed, by the name of the field.
        errors: what is wrong with it, by the name of the field.
        overtaken: somebody was first: said instead of the question.
    """

    event: Link
    url: str
    title: str
    happens: tuple[str, ...]
    stays: tuple[str, ...]
    button: str
    keep: str
    waits: tuple[WaitChoice, ...] = ()
    other: bool = False
    typed: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    overtaken: str = ""


@dataclass(frozen=True, slots=True)
class SendQuestion:
    """The form for an event by hand. `token` makes pressing twice send once."""

    sources: tuple[Link, ...]  # text: the name, url: the slug
    token: str
    typed: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
