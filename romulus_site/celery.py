"""The Celery application. Its messages are hints (promise P10): the database says what is due."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "romulus_site.settings")

app = Celery("romulus")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
