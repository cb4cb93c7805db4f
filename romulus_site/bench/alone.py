"""Celery alone: a task that only tells when it runs, by the same worker and broker as the runs."""

from __future__ import annotations

from celery import shared_task

from romulus_site.bench.flows import tell_of

TASK = "romulus_site.bench.alone"


@shared_task(name=TASK)
def alone(name: str) -> None:
    tell_of(name)
