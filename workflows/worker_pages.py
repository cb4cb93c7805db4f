"""What the page of workers shows: filled by `selectors.worker_list`, read by
`templates/workflows/workers.html`. Plain data, as in `pages`.

`workers` answers `workers.html` with {"page": WorkersPage, "now"}; to htmx, `_workers.html`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from workflows.pages import Link


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """One worker process.

    Attributes:
        state: `alive`; `quiet`, it was not seen for longer than a lease; `no_broker`, its messages
            do not reach the broker; or `no_sweep`, it has not swept for long.
        runs: some of the runs that it holds, of those that the reader may see; `more_runs` besides.
        versions: what it has the code for, such as "refund v3"; `more_versions` besides.
    """

    name: str
    state: str
    sentence: str
    started_at: datetime
    seen_at: datetime
    swept_at: datetime | None = None
    runs: Sequence[Link] = ()
    more_runs: int = 0
    versions: Sequence[str] = ()
    more_versions: int = 0


@dataclass(frozen=True, slots=True)
class WorkersPage:
    """`alive` are those seen within a lease, `quiet` those that went quiet lately or hold runs.

    Attributes:
        ready, running, expired: unfinished runs that the reader may see.
        more: live workers that are not shown.
    """

    verdict: str
    helps: str = ""
    tone: str = "good"
    alive: Sequence[WorkerRow] = ()
    quiet: Sequence[WorkerRow] = ()
    more: int = 0
    ready: int = 0
    running: int = 0
    expired: int = 0
    may_see: bool = True


@dataclass(frozen=True, slots=True)
class Health:
    """One fact about the machinery and what it means; `state` as in the vocabulary of workers."""

    state: str
    text: str
    helps: str = ""
