"""What console tests share: the test client never needs collected static files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def static_root(settings: Any, tmp_path: Path) -> None:
    """An empty folder: without one, the middleware that serves static files warns."""
    settings.STATIC_ROOT = tmp_path
