"""A process of its own that puts a policy in force which lets nobody do anything."""

from __future__ import annotations

import django


def main() -> None:
    django.setup()
    from tests.approving import policy

    policy(grants=[])


if __name__ == "__main__":
    main()
