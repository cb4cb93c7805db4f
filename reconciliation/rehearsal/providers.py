"""How the rehearsal destination's personalities are declared to the adapter."""

from __future__ import annotations

from typing import Any

ACTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "keyed": {
        "refunds.create": {
            "path": "/keyed/v1/refunds",
            "marker": "metadata.operation",
            "record": {
                "operation": "metadata.operation",
                "account": "account",
                "amount": "amount",
                "currency": "currency",
                "order": "order",
            },
            "verify": {"path": "/keyed/v1/refunds/{resource}", "expect": {"status": "succeeded"}},
        }
    },
    "lookup": {
        "machines.create": {
            "path": "/lookup/v1/machines",
            "marker": "metadata.operation",
            "record": {
                "operation": "metadata.operation",
                "account": "account",
                "name": "name",
                "size": "size",
                "zone": "zone",
            },
            "look_up": {"path": "/lookup/v1/machines?operation={operation}", "items": "data"},
            "verify": {"path": "/lookup/v1/machines/{resource}", "expect": {"status": "running"}},
        }
    },
    "blind": {
        "comments.create": {
            "path": "/blind/v1/tickets/{ticket}/comments",
            "record": {"account": "account", "ticket": "ticket"},
        }
    },
}

# A write of each action, to rehearse with; {unique} is another word each time.
EXAMPLES: dict[str, dict[str, Any]] = {
    "refunds.create": {"order": "{unique}", "amount": 12500, "currency": "USD"},
    "machines.create": {"name": "{unique}", "size": "small", "zone": "zone-a"},
    "comments.create": {"ticket": "T-1", "body": "Rehearsed: {unique}"},
}
