"""The outputs of a run, as rows: the latest of each step, and what was refused."""

from __future__ import annotations

from typing import Any

from django.db.models import Case, F, Func, IntegerField, JSONField, QuerySet, Value, When
from django.db.models.functions import Coalesce

from workflows.core.states import AttemptState, OutputForm
from workflows.models import Attempt, Run

REFUSED_SHOWN = 10
# In bytes as stored. Larger outputs are said to be there; reading them all would be megabytes.
OUTPUT_READ = 8 * 1024


def latest_outputs(run: Run, *, payloads: bool) -> QuerySet[Attempt]:
    """The latest output of each step.

    Without its content where the reader may not see it or it is large. What is sealed or kept as
    an object is not read for a page.

    Args:
        payloads: the reader may see what outputs say.
    """
    outputs = Attempt.objects.outputs().filter(run=run)
    latest = outputs.order_by("step", "-visit").distinct("step").values("pk")
    return with_content(Attempt.objects.filter(pk__in=latest), payloads=payloads)


def late_outputs(run: Run, *, payloads: bool) -> QuerySet[Attempt]:
    """What came too late and is kept as evidence: the newest of it."""
    late = Attempt.objects.filter(run=run, state=AttemptState.SUPERSEDED, output_form__isnull=False)
    return with_content(late, payloads=payloads).order_by("-fence")[:REFUSED_SHOWN]


def with_content(rows: QuerySet[Attempt], *, payloads: bool) -> QuerySet[Attempt]:
    """Annotate what each left with its `size` and its `content`, and do not read it otherwise."""
    stored = Func(F("output"), function="pg_column_size", output_field=IntegerField())
    content: Any = Value(None, output_field=JSONField())
    if payloads:
        shown = When(output_form=OutputForm.PLAIN, size__lte=OUTPUT_READ, then=F("output"))
        content = Case(shown, output_field=JSONField())
    sized = rows.defer("output").annotate(size=Coalesce(stored, 0))
    found: QuerySet[Attempt] = sized.annotate(content=content)
    return found
