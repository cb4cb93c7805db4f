"""What the pages about runs show: filled by selectors, read by `templates/workflows/`.

Plain data without Django. Texts are plain text; templates escape them. States are the words of
`core.states`; templates turn them into words, tones and icons.

Addresses (`urls.py`) and what each answers; one address gives the fragment to htmx and the whole
page otherwise (told apart by the `HX-Target` header):

- `runs` (`?state=`, `?before=`/`?after=`): `runs.html` with {"page": RunList, "now"};
  target `runs`: `_runs.html`.
- `run` (uuid; `?scale=true` for the unfolded time axis): `run.html` with {"page": RunPage, "now"};
  target `timeline`: `_timeline.html`; target `live`: `_refreshed.html`, or 204 when `?seen=` equals
  `page.seen`.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    """A term and its value; `code` shows it as code."""

    term: str
    text: str
    code: bool = False


@dataclass(frozen=True, slots=True)
class Pager:
    """Addresses of the neighbouring pages of a list that is paged by key; empty at its ends."""

    newer: str = ""
    older: str = ""


@dataclass(frozen=True, slots=True)
class Filter:
    """One way to see a list."""

    text: str
    url: str
    current: bool
    count: int | None = None


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

    @property
    def took(self) -> timedelta:
        return (self.ended_at or self.started_at) - self.started_at


@dataclass(frozen=True, slots=True)
class RunList:
    """The runs that the reader may see, newest first."""

    rows: tuple[RunRow, ...]
    filters: tuple[Filter, ...]
    pager: Pager
    url: str  # this very page, filters included: what polling asks for
    filtered: bool = False  # rows are hidden by a filter
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


@dataclass(frozen=True, slots=True)
class GraphStep:
    """A step of the workflow, as seen from where the run stands."""

    name: str
    title: str
    place: Literal["done", "here", "todo"]
    note: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class OutputCard:
    """What a step committed. `hidden`: the reader may not see payloads."""

    step: str
    fence: int
    number: int  # the try that committed it
    committed_at: datetime
    facts: tuple[Fact, ...] = ()
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """One attempt as a lease: the newest first."""

    fence: int
    worker: str
    step: str
    number: int
    state: str  # of the attempt
    started_at: datetime
    ended_at: datetime | None
    error: str = ""


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
    seen: str  # changes whenever anything on the page has changed
    graph: tuple[GraphStep, ...] = ()
    outputs: tuple[OutputCard, ...] = ()
    leases: tuple[LeaseRow, ...] = ()
    log: tuple[LogEntry, ...] = ()  # newest first
    older_log_url: str = ""
    refused: int = 0  # late writes that were refused

    @property
    def is_final(self) -> bool:
        return self.ended_at is not None

    @property
    def is_moving(self) -> bool:
        return self.state in {"ready", "running"}

    @property
    def poll_seconds(self) -> int:
        """How often the page asks for news: often while it moves, less while it waits."""
        return 5 if self.is_moving else 30
