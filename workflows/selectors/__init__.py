"""Reading the execution record for people and programs: nothing here writes.

`workers` says who works, `explanations` why runs are where they are, `run_list` and `run_page`
fill the pages. What other apps know about a run comes through `run_parts`. The caller gives the
rows that a person may see; whose they are is asked in `access` alone.
"""

from __future__ import annotations

from workflows.selectors.explanations import explain_run, explain_runs, facts_about
from workflows.selectors.run_steps import step_names
from workflows.selectors.workers import live_worker_pids, live_workers, named, worker_names

__all__ = [
    "explain_run",
    "explain_runs",
    "facts_about",
    "live_worker_pids",
    "live_workers",
    "named",
    "step_names",
    "worker_names",
]
