"""Celery's care for Django, without a new session with the database for each task and without the
console in each worker.

Celery closes a thread's connection before and after each task: a task would begin with a new
session, and plan its statements anew. That takes longer than all else between a message and the
step that it leads to. Here a thread keeps its connection as a thread of the console does, by the
rules of Django: CONN_MAX_AGE, CONN_HEALTH_CHECKS, and never one that has failed.

Celery also lets Django check itself before a worker begins. What that looks at is the console's,
which it loads for it: every page, form and address, a fifth of what a worker's start takes.
`manage.py check` is for that.
"""

from __future__ import annotations

from typing import Any

from celery import Celery
from celery.fixups.django import DjangoFixup, DjangoWorkerFixup  # type: ignore[attr-defined]
from django.db import close_old_connections


class WorkerFixup(DjangoWorkerFixup):  # type: ignore[misc]
    def validate_models(self) -> None:
        self.django_setup()

    def on_task_prerun(self, sender: Any, **_: Any) -> None:
        if not sender.request.is_eager:
            close_old_connections()

    def on_task_postrun(self, sender: Any, **_: Any) -> None:
        if not sender.request.is_eager:
            close_old_connections()
            self.close_cache()


class Fixup(DjangoFixup):
    _worker_fixup: WorkerFixup | None

    @property
    def worker_fixup(self) -> WorkerFixup:
        # Made at its first use: it reads the configuration, which the app has not got before.
        if self._worker_fixup is None:
            self._worker_fixup = WorkerFixup(self.app)
        return self._worker_fixup


def fixup(app: Celery) -> Fixup:
    installed = Fixup(app)
    installed.install()
    return installed
