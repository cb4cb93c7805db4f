"""A process of its own in which an executor elsewhere is told once whether a write is allowed."""

from __future__ import annotations

import sys

import django

ASKED = {
    "subject": {"type": "workflow", "id": "elsewhere"},
    "action": {"name": "refunds.create"},
    "resource": {"type": "refunds", "id": "ORD-1"},
}


def main() -> None:
    django.setup()
    from tests.factories import tenant
    from workflows.services.served_boundary import evaluated

    sys.stdout.write(str(evaluated(ASKED, tenant())["decision"]))


if __name__ == "__main__":
    main()
