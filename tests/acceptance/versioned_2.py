"""What a worker of the new deployment has: version 2 alone."""

from __future__ import annotations

from tests.versions import second_version

versioned = second_version()
