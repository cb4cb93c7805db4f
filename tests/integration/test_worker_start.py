"""A worker's start loads what a worker uses."""

from __future__ import annotations

import subprocess
import sys

from tests.workers import ROOT

# What `celery worker` does before it connects to anything; then, whether it has read the addresses
# of the console and with them its pages.
LOADED = """
import sys
from romulus_site.celery import app
app.loader.import_default_modules()
assert "workflows.tasks.advance" in app.tasks, sorted(app.tasks)
print("romulus_site.urls" in sys.modules)
"""


def test_a_worker_does_not_load_the_console() -> None:
    said = subprocess.run(
        [sys.executable, "-c", LOADED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == "False"
