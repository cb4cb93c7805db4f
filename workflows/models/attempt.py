"""One worker's time-limited claim on one run, and the output that it left.

Its row is written once, when it ends, in the commit that ends it: the output and the move past the
step are one commit (promise P1). While it is under way its facts are columns of the run: the type
of the column `state` refuses what is not the state of an ended attempt (migration 0004).
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from workflows.core.states import AttemptState
from workflows.models.ids import new_id
from workflows.models.run import Run


class AttemptQuerySet(models.QuerySet["Attempt"]):
    def outputs(self) -> AttemptQuerySet:
        """Those whose output counts: what later steps read."""
        return self.filter(state=AttemptState.COMMITTED, output_form__isnull=False)


class Attempt(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    # Without a constraint in the database: a row is only ever written by the statement that moves
    # its run, and checking each one again would cost a third of a step.
    run = models.ForeignKey(
        Run, on_delete=models.PROTECT, related_name="attempts", db_constraint=False, db_index=False
    )
    worker = models.UUIDField()
    claimed_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    fence = models.BigIntegerField()
    visit = models.IntegerField()
    number = models.IntegerField()  # the how-manieth try of this step and visit
    step = models.CharField(max_length=63)
    state = models.CharField(max_length=16, default=AttemptState.RUNNING)
    error = models.TextField(blank=True, default="", db_default="")
    # What later steps read; of a superseded attempt, what it brought too late.
    output = models.JSONField(null=True)
    output_form = models.CharField(max_length=8, null=True)  # an OutputForm, if it left one
    purged_at = models.DateTimeField(null=True)

    objects = AttemptQuerySet.as_manager()

    @classmethod
    def under_way(cls, run: Run) -> Attempt:
        """The attempt that is under way at a running `run`, which has no row yet; not saved."""
        assert run.lease_owner is not None
        assert run.claimed_at is not None
        return cls(
            id=run.attempt,
            run=run,
            step=run.step,
            visit=run.visit,
            number=run.tries,
            worker=run.lease_owner,
            fence=run.fence,
            claimed_at=run.claimed_at,
            state=AttemptState.RUNNING,
        )

    class Meta:
        constraints = [
            # A fence is given out once; also finds a run's attempts in order.
            models.UniqueConstraint(name="attempt_fence_once", fields=["run", "fence"]),
            # A step is passed once per visit; also finds the output that a step asks for.
            models.UniqueConstraint(
                name="output_once_per_visit",
                fields=["run", "step", "visit"],
                condition=Q(state=AttemptState.COMMITTED, output_form__isnull=False),
            ),
        ]
