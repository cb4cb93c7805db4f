"""What a worker of the old deployment has: version 1 alone."""

from __future__ import annotations

from tests.versions import first_version

versioned = first_version()
