"""A process of its own that stores one event, whose correlation and ID it is given."""

from __future__ import annotations

import sys

import django


def main(correlation: str, event_id: str) -> None:
    django.setup()
    from tests.events import delivered

    print(delivered(correlation, event_id=event_id).outcome)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
