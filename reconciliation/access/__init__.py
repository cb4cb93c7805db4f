"""Who may see and do what. Objects for a user come from here only.

Rights are held per object, on tenants, providers and review queues.
"""

from __future__ import annotations

from reconciliation.access.acting import (
    ensure_may_review,
    may_answer_for,
    may_assign,
    may_decide,
    may_review,
    owned_queues,
    team_queues,
)
from reconciliation.access.answering import Answering, answering_of
from reconciliation.access.in_sql import (
    DECIDES,
    OWNED,
    TEAM_QUEUES,
    VISIBLE_CHANNELS,
    VISIBLE_STOPS,
    asked_of,
    open_holds_counted,
)
from reconciliation.access.parts import Parts, parts_in, parts_in_each
from reconciliation.access.people import (
    confirmers_of,
    deciders_in,
    deciders_of,
    holders_on,
    marked_deciders,
    other_seconds,
    viewers_of,
    with_deciders,
)
from reconciliation.access.seeing import (
    SHOWN_WITH,
    hold_for,
    in_visible_queues,
    open_holds,
    operation_for,
    operations_in_full,
    provider_for,
    seen_by,
    stops_in_force,
    switchable_providers,
    visible_channels,
    visible_holds,
    visible_operations,
    visible_providers,
    visible_queues,
    visible_stops,
)
from reconciliation.access.standing import (
    ensure_may_confirm,
    ensure_may_decide,
    ensure_may_withdraw,
    standing_of,
    why_not_decide,
)

__all__ = [
    "DECIDES",
    "OWNED",
    "SHOWN_WITH",
    "TEAM_QUEUES",
    "VISIBLE_CHANNELS",
    "VISIBLE_STOPS",
    "Answering",
    "Parts",
    "answering_of",
    "asked_of",
    "confirmers_of",
    "deciders_in",
    "deciders_of",
    "ensure_may_confirm",
    "ensure_may_decide",
    "ensure_may_review",
    "ensure_may_withdraw",
    "hold_for",
    "holders_on",
    "in_visible_queues",
    "marked_deciders",
    "may_answer_for",
    "may_assign",
    "may_decide",
    "may_review",
    "open_holds",
    "open_holds_counted",
    "operation_for",
    "operations_in_full",
    "other_seconds",
    "owned_queues",
    "parts_in",
    "parts_in_each",
    "provider_for",
    "seen_by",
    "standing_of",
    "stops_in_force",
    "switchable_providers",
    "team_queues",
    "viewers_of",
    "visible_channels",
    "visible_holds",
    "visible_operations",
    "visible_providers",
    "visible_queues",
    "visible_stops",
    "why_not_decide",
    "with_deciders",
]
