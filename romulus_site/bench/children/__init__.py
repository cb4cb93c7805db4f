"""The processes that are measured: `python -m romulus_site.bench.children NAME`."""

from __future__ import annotations
