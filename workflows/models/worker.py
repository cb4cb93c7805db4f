"""The worker processes that were seen: who holds leases, and who has which workflows."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from workflows.models.ids import new_id


class Worker(models.Model):
    """One worker process. Its identity is made at its start and never shared or used again."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    started_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_default=Now())
    workflows = models.JSONField()  # [[name, version], …]
    # The server's process that its keeper speaks to, and since when that server runs. It is there
    # for as long as the worker's is; None where a pooler hides it (services/gone_workers.py).
    session = models.IntegerField(null=True)
    server_since = models.DateTimeField(null=True)
    # Since when that was over, as another worker has found; None again as soon as it is heard of.
    gone_at = models.DateTimeField(null=True)
    # What it knows: since when its messages do not reach the broker, and when it swept last.
    broker_away_since = models.DateTimeField(null=True)
    swept_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            # Live workers are those seen lately (selectors.live_workers).
            models.Index(name="worker_seen", fields=["-seen_at"]),
        ]

    @property
    def name(self) -> str:
        return f"{self.host}/{self.pid}"

    def __str__(self) -> str:
        return self.name
