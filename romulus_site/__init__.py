"""The site: settings, URLs, the Celery application, the embedded PostgreSQL, health.

Imports both apps; neither app imports it.
"""

from __future__ import annotations

from romulus_site.celery import app as celery_app

__all__ = ["celery_app"]
