"""What the pages about runs show: filled by selectors, read by `templates/workflows/`.

Plain data without Django. Texts are plain text; templates escape them. States are the words of
`core.states`; templates turn them into words, tones and icons.

Addresses (`urls.py`) and what each answers; one address gives the fragment to htmx and the whole
page otherwise (told apart by the `HX-Target` header):

- `runs` (`?state=`, `?children=with`, `?parent=` (uuid), `?before=`/`?after=`): `runs.html` with
  {"page": RunList, "now"}; target `runs`: `_runs.html`; target
  `runs-poll`: 204 while `?seen=` is what there is, else `_runs_changed.html` with {"changes"} too,
  or where more has changed than rows, `_runs.html` for `#runs`.
- `run` (uuid; `?scale=true` for the unfolded time axis, `?log=` for entries of one kind, `?before=`
  for older ones, `?children=` for a later page of the runs that it started): `run.html` with
  {"page": RunPage, "now"}; target `live`: `_refreshed.html`, or 204 when `?seen=` equals
  `page.seen`.
- `run_cancel`, `run_pause`, `run_resume` (uuid), for those who may control the run, else 404:
  - GET changes nothing: `confirm.html` with {"page": Confirmation, "now"}; target `confirm`:
    `_confirm.html`, which `run.html` shows in a dialog.
  - POST of `reason`: done, also when the same person did it before: 303 to the run, to htmx 204
    with `HX-Redirect`. No reason, 422, or somebody was first, 409: the same templates, with
    `page.errors` or `page.overtaken`; what was typed stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from workflows.core.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Link:
    text: str
    url: str


@dataclass(frozen=True, slots=True)
class Fact:
    """A term and its value; `code` shows it as code, `at` is a time in place of the text."""

    term: str
    text: str
    code: bool = False
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Pager:
    """Addresses of the neighbouring pages of a list that is paged by key; empty at its ends."""

    newer: str = ""
    older: str = ""


# Some 30 MB of CSV: what a spreadsheet still opens. Longer lists are narrowed down by a filter.
MOST_EXPORTED = 100_000


@dataclass(frozen=True, slots=True)
class Export:
    """Where a list is had as a file (POST of `as`: csv or json), and how many rows at most."""

    url: str
    most: int = MOST_EXPORTED


@dataclass(frozen=True, slots=True)
class Filter:
    """One way to see a list."""

    text: str
    url: str
    current: bool
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """What counts beside the state of a run: somebody's wish, or a worker that went quiet."""

    state: Literal["paused", "cancelling", "quiet"]
    text: str  # "Paused by ada"


@dataclass(frozen=True, slots=True)
class Paused:
    """A workflow or a tenant that is paused as a whole."""

    what: str  # "Workflow refund"
    by: str
    at: datetime
    reason: str


# --- the list ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run in the list. `sentence` is what `explain` says; `step` is where it stands."""

    id: UUID
    workflow: str
    version: int
    label: str  # what tells this run from others, such as its start key; may be empty
    state: str
    step: str
    number: int  # of the step, from 1
    steps: int
    sentence: str
    started_at: datetime
    ended_at: datetime | None
    marks: tuple[Mark, ...] = ()
    parent_url: str = ""  # of the run that started it
    parent: str = ""  # where in that run: "pack_and_bill, branch 2"

    @property
    def key(self) -> str:
        """What its row is called on the page: the end of its ID, which is random."""
        return self.id.hex[-12:]

    @property
    def took(self) -> timedelta:
        return (self.ended_at or self.started_at) - self.started_at


@dataclass(frozen=True, slots=True)
class RunList:
    """The runs that the reader may see, newest first.

    Attributes:
        scope: whether runs that other runs started are listed beside them.
        parent: the run whose own runs are listed, when it is only those.
        pauses: what is paused as a whole and keeps some of the rows where they are.
    """

    rows: tuple[RunRow, ...]
    filters: tuple[Filter, ...]
    scope: tuple[Filter, ...]
    pager: Pager
    url: str  # this very page, filters included: what polling asks for
    export: Export
    filtered: bool = False  # rows are hidden by a filter
    parent: Link | None = None
    pauses: tuple[Paused, ...] = ()
    moving: bool = True  # some row is not in a final state, so the list is worth polling


# --- one run ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CheckedCause:
    """One of the causes that were looked at, whether or not it is the one."""

    name: str
    verdict: Literal["is", "maybe", "no"]
    text: str


@dataclass(frozen=True, slots=True)
class Why:
    """Why the run is not moving, or how it ended: one cause, one sentence, what helps."""

    lead: str  # shown bold: "It is held at step 4 of 7."
    text: str
    helps: str
    owner: str = ""
    links: tuple[Link, ...] = ()  # the first is the primary one
    causes: tuple[CheckedCause, ...] = ()
    facts: tuple[Fact, ...] = ()  # that the sentence rests on


@dataclass(frozen=True, slots=True)
class Way:
    """A step that another one may lead to by name. `taken`: it went there last."""

    text: str
    taken: bool


@dataclass(frozen=True, slots=True)
class GraphStep:
    """A step of the workflow, as seen from where the run stands.

    Attributes:
        place: `off`: it will not come, since the run went another way or is over.
        state: of the run that is `here`.
        follows: the step before it leads to it.
        ways: where it may lead besides, or instead of, the next one.
        branches: of a parallel group.
    """

    name: str
    title: str
    place: Literal["done", "here", "todo", "off"]
    note: str
    url: str = ""
    state: str = ""
    follows: bool = True
    ways: tuple[Way, ...] = ()
    branches: tuple[GraphBranch, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphBranch:
    """One branch of a parallel group: a run of its own, once the group is reached."""

    number: int
    steps: tuple[GraphStep, ...]
    state: str = ""  # of its run; empty before there is one
    url: str = ""


@dataclass(frozen=True, slots=True)
class OutputCard:
    """What an attempt left. `hidden`: the reader may not see payloads.

    `refused`: it came too late, counts for nothing, and is kept as evidence.
    """

    step: str
    fence: int
    number: int  # the try that left it
    committed_at: datetime
    visit: int = 1
    facts: tuple[Fact, ...] = ()
    hidden: bool = False
    refused: bool = False
    worker: str = ""


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """One attempt as a lease: the newest first."""

    fence: int
    worker: str
    step: str
    number: int
    state: str  # of the attempt; empty where nothing counts of it yet
    started_at: datetime
    ended_at: datetime | None
    error: str = ""
    visit: int = 1


@dataclass(frozen=True, slots=True)
class ChildRow:
    """A run that this one started. `message` says why it waits, is held or failed."""

    url: str
    id: UUID
    name: str
    place: str  # "pack_and_bill, branch 2", "collect, number 17, visit 3"
    state: str
    step: str
    message: str
    started_at: datetime
    ended_at: datetime | None
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Children:
    """The runs that this one started: those that are held first, then by how they stand."""

    rows: tuple[ChildRow, ...]
    total: int
    counts: tuple[Fact, ...]  # by state
    url: str  # of the list of them all
    first_url: str = ""  # of the first page, on a later one
    next_url: str = ""


@dataclass(frozen=True, slots=True)
class SeenEvent:
    """An event that a wait got, or that came too late for it. `by` attached it by hand."""

    text: str  # its type and its sender's ID
    url: str
    source: str
    at: datetime
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RunWait:
    """A wait of the run, with the first events that it got; `got` counts them all."""

    step: str
    visit: int
    types: str
    correlation: str
    state: str
    started_at: datetime
    deadline: datetime | None
    resolved_at: datetime | None
    needed: int = 1
    got: int = 0
    events: tuple[SeenEvent, ...] = ()
    late: tuple[SeenEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class ControlLink:
    """What this reader may do to the run; `url` asks for a confirmation."""

    name: str  # cancel, pause, resume
    text: str
    url: str
    icon: str


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A line of the event log; `kind` and `state` as in the vocabulary of the console."""

    at: datetime
    kind: str
    state: str
    text: str
    by: str
    fence: int | None = None


@dataclass(frozen=True, slots=True)
class RunPage:
    id: UUID
    title: str
    state: str
    workflow: str
    version: int
    step: str
    number: int  # of the step, from 1
    steps: int
    worker: str  # who holds it now, or empty
    fence: int
    last_worker: str
    started_at: datetime
    ended_at: datetime | None
    why: Why
    timeline: Timeline
    url: str  # this very page, with its scale and filters: what polling asks for
    seen: str  # changes whenever anything on the page has changed
    visit: int = 1
    marks: tuple[Mark, ...] = ()
    pauses: tuple[Paused, ...] = ()
    controls: tuple[ControlLink, ...] = ()
    parent: Link | None = None
    parent_place: str = ""  # where in its parent: "pack_and_bill, branch 2"
    graph: tuple[GraphStep, ...] = ()
    children: Children | None = None
    waits: tuple[RunWait, ...] = ()  # the newest first
    outputs: tuple[OutputCard, ...] = ()
    leases: tuple[LeaseRow, ...] = ()
    tries: int = 0  # all attempts; `leases` has the newest of them
    drawn: int = 0  # of these, the newest, in the timeline
    scales: tuple[Filter, ...] = ()  # of the time axis
    log: tuple[LogEntry, ...] = ()  # newest first
    log_filters: tuple[Filter, ...] = ()
    older_log_url: str = ""
    refused: int = 0  # late writes that were refused
    moving: bool = False  # it, or a run that it waits for, is at work

    @property
    def is_final(self) -> bool:
        return self.ended_at is not None

    @property
    def poll_seconds(self) -> int:
        """How often the page asks for news: often while it moves, less while it waits."""
        return 5 if self.moving else 30


# --- stopping a run ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What is asked before somebody cancels, pauses or resumes a run.

    Attributes:
        title: the question.
        happens, stays: in sentences.
        button, keep: the two ways out; `grave`: it cannot be taken back.
        paused_at: of the pause that it was shown with, to be posted with it; empty without one.
        reason: what was typed.
        errors: what is wrong with it, by the name of the field.
        overtaken: somebody was first, or the run has ended: said instead of the question.
    """

    run: Link
    url: str
    title: str
    happens: tuple[str, ...]
    stays: tuple[str, ...]
    button: str
    keep: str
    grave: bool = False
    paused_at: str = ""
    reason: str = ""
    errors: Mapping[str, str] = field(default_factory=dict)
    overtaken: str = ""
