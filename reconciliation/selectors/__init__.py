"""Reading the ledger for people: the review queue, one operation, one held run.

Each page is filled for one person, from what `access` lets that person see, in a number of queries
that does not grow with the rows. Whether a decision is offered, and why not, is the core's answer
(`core.options`); the sentences of holds are the core's too (`core.facts`).
"""

from __future__ import annotations

from reconciliation.selectors.held_run_page import held_run_page
from reconciliation.selectors.operation_page import operation_page
from reconciliation.selectors.queue import news_since, review_page

__all__ = [
    "held_run_page",
    "news_since",
    "operation_page",
    "review_page",
]
