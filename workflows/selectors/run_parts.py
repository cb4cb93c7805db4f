"""What other apps know about a run, for its page: they register, this app never imports them.

A run page is drawn from the execution record and from what is registered here: operations below
their steps, holds, what was sent, and what would move a run that waits for one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Protocol

from workflows.core.timeline import Lane, Span
from workflows.models import Run
from workflows.pages import CheckedCause, Link, LogEntry

if TYPE_CHECKING:
    from django.contrib.auth.models import User


@dataclass(frozen=True, slots=True)
class Deed:
    """What a person did to a run. `did` is a word for it, beside its mark; `text` a sentence."""

    by: str
    at: datetime
    did: str
    text: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class RunParts:
    """What an app adds to the page of one run; mappings are by the name of the step.

    Attributes:
        lanes: rows of the timeline below a step's own row.
        spans: bars in a step's own row.
        urls: where more can be read about a step.
        deeds: what people did, for the timeline.
        log: entries of the event log, in any order.
        owner: who moves the run next, when a person does.
        helps: what would move it, when this app knows better than the run itself.
        links: where that is done, the primary one first.
        causes: what was looked at besides the run itself, by name; stands in for the run's own.
        why_paused, why_cancelled: the reason that somebody gave for it last.
        seen: changes whenever anything above has changed.
        turns: when something of it is to be said otherwise though no row changes.
    """

    lanes: Mapping[str, Sequence[Lane]] = field(default_factory=dict)
    spans: Mapping[str, Sequence[Span]] = field(default_factory=dict)
    urls: Mapping[str, str] = field(default_factory=dict)
    deeds: Sequence[Deed] = ()
    log: Sequence[LogEntry] = ()
    owner: str = ""
    helps: str = ""
    links: tuple[Link, ...] = ()
    causes: tuple[CheckedCause, ...] = ()
    why_paused: str = ""
    why_cancelled: str = ""
    seen: str = ""
    turns: tuple[datetime, ...] = ()


class Source(Protocol):
    def __call__(
        self, run: Run, user: User | None, *, before: datetime | None, zone: tzinfo
    ) -> RunParts: ...


_sources: list[Source] = []
_rows: list[str] = []


def register_run_parts(source: Source, rows: Sequence[str]) -> None:
    """Let `source(run, user, before=…, zone=…)` add to each run page what `user` may see; `rows` is
    what that is made of, for the page's stamp (`stamps.version_of`), of `run` and `object`.

    Nobody (None) is a command on this machine, which sees everything. The log's entries are those
    before `before`, when it is given; the rest is as it is now.
    """
    _sources[:] = [source]
    _rows[:] = rows


def rows_of_parts() -> Sequence[str]:
    return _rows


def run_parts(
    run: Run, user: User | None, *, before: datetime | None = None, zone: tzinfo = UTC
) -> RunParts:
    """`zone`: in which times are said in sentences."""
    for source in _sources:
        return source(run, user, before=before, zone=zone)
    return RunParts()
