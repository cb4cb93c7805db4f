"""What a worker has where somebody took a step away without a new version."""

from __future__ import annotations

from tests.versions import changed_first_version

versioned = changed_first_version()
