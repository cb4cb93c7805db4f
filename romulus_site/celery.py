"""The Celery application. Its messages are hints (promise P10): the database says what is due."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import worker_init

from romulus_site import transports

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "romulus_site.settings")

transports.register()
app = Celery("romulus")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect(weak=False)
def refuse_poolers(**_: Any) -> None:
    """A worker that would fail at its first runs says why, and ends."""
    import psycopg
    from django.db import OperationalError

    from romulus_site import poolers

    try:
        reason = poolers.why_not()
    except (OperationalError, psycopg.OperationalError):
        return  # the database does not answer yet
    if reason:
        raise SystemExit(reason)
