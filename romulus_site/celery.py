"""The Celery application. Its messages are hints (promise P10): the database says what is due."""

from __future__ import annotations

import logging
import os
from typing import Any

from celery import Celery
from celery.signals import setup_logging, worker_init, worker_ready

from romulus_site import transports

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "romulus_site.settings")

RESETS_SECONDS, FORGET_SECONDS = 1, 600

transports.register()
app = Celery("romulus", fixups=["romulus_site.celery_fixup:fixup"])
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect(weak=False)
def keep_logging(loglevel: int, **_: Any) -> None:
    """Celery sets up no logging where somebody listens: the settings have done it. How much is
    told of Celery itself, which could tell of every message, is its option `--loglevel`."""
    logging.getLogger("celery").setLevel(loglevel)


@worker_ready.connect(weak=False)
def add_duties(**_: Any) -> None:
    """What the site has done by workers: mail of its own, and the end of what is kept."""
    from reconciliation.services.forgetting import forget_told
    from romulus_site.accounts.resets import send_due
    from romulus_site.accounts.sessions import forget_ended
    from workflows.services.seldom import Seldom
    from workflows.services.sweep import register_duty

    register_duty(Seldom("password resets", send_due, RESETS_SECONDS))
    register_duty(Seldom("ended sessions", forget_ended, FORGET_SECONDS))
    register_duty(Seldom("told", forget_told, FORGET_SECONDS))


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
