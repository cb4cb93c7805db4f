"""The Celery application. Its messages are hints (promise P10): the database says what is due."""

from __future__ import annotations

import logging
import os
from typing import Any

from celery import Celery
from celery.signals import setup_logging, worker_init

from romulus_site import transports

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "romulus_site.settings")

transports.register()
app = Celery("romulus", fixups=["romulus_site.celery_fixup:fixup"])
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect(weak=False)
def keep_logging(loglevel: int, **_: Any) -> None:
    """Celery sets up no logging where somebody listens: the settings have done it. How much is
    told of Celery itself, which could tell of every message, is its option `--loglevel`."""
    logging.getLogger("celery").setLevel(loglevel)


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
