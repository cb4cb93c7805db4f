"""How writes and their recovery are doing, for `/metrics`; as `workflows.selectors.measures`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.db import connection
from django.db.models import Count, Min, Q, Value
from django.db.models.functions import Coalesce

from reconciliation import access
from reconciliation.core.states import SETTLED, HoldState, OperationState
from reconciliation.models import AuditEntry, Evidence, Hold, Operation, Transmission
from reconciliation.selectors.audit_page import latest_check
from workflows.core.measures import Measure, Sample, by, one
from workflows.models.ids import id_at
from workflows.selectors.measures import LATELY, WINDOW, age

QUANTILES = (0.5, 0.95, 1.0)
# From the first send to what proved it, of operations that were proven lately.
LATENCY = """
SELECT percentile_cont(%s::float8[]) WITHIN GROUP (
    ORDER BY EXTRACT(EPOCH FROM seen.recorded_at - operation.first_sent_at))
FROM reconciliation_evidence seen
JOIN reconciliation_operation operation ON operation.id = seen.operation_id
WHERE seen.id >= %s AND seen.completes AND operation.first_sent_at IS NOT NULL
"""


def measures(now: datetime) -> Iterator[Measure]:
    yield from operations(now)
    yield from transmissions(now)
    yield latency(now)
    yield evidence(now)
    yield from holds(now)
    yield from contradictions()
    stops = access.stops_in_force()
    yield by(
        "dispatch_stops",
        "Switches of dispatch in force, by state.",
        "state",
        stops.values_list("state").annotate(Count("pk")).order_by("state"),
    )
    yield from chain(now)


def operations(now: datetime) -> Iterator[Measure]:
    unsettled = Operation.objects.exclude(state__in=SETTLED)
    rows = list(
        unsettled.values_list("provider__slug", "state")
        .annotate(Count("pk"), Min("created_at"))
        .order_by("provider__slug", "state")
    )
    yield Measure(
        "operations_unsettled",
        "Operations whose outcome is not settled, by provider and state.",
        tuple(Sample(count, {"provider": slug, "state": state}) for slug, state, count, _ in rows),
    )
    yield Measure(
        "operations_unsettled_oldest_seconds",
        "Age of the oldest of them.",
        tuple(
            Sample(age(oldest, now), {"provider": slug, "state": state})
            for slug, state, _, oldest in rows
        ),
    )
    failed = sum(row[2] for row in rows if row[1] == OperationState.POSTCONDITION_FAILED)
    yield one("postconditions_failed", "Writes that took effect and not as they should.", failed)


def transmissions(now: datetime) -> Iterator[Measure]:
    lately = Transmission.objects.filter(pk__gte=id_at(now - WINDOW))
    rows = lately.values_list("purpose", "state").annotate(Count("pk")).order_by("purpose", "state")
    yield Measure(
        "transmissions_recent",
        f"Sends begun {LATELY}, by purpose and state.",
        tuple(Sample(count, {"purpose": why, "state": state}) for why, state, count in rows),
    )
    found = lately.aggregate(sends=Count("pk"), of=Count("operation", distinct=True))
    yield one(
        "transmissions_per_operation",
        f"Sends of each operation that was sent {LATELY}.",
        found["sends"] / found["of"] if found["of"] else None,
    )


def latency(now: datetime) -> Measure:
    with connection.cursor() as cursor:
        cursor.execute(LATENCY, [list(QUANTILES), id_at(now - WINDOW)])
        (found,) = cursor.fetchone()
    values = zip(QUANTILES, found, strict=True) if found else ()
    return by(
        "reconciliation_seconds",
        f"From the first send to its proof, of operations proven {LATELY}.",
        "quantile",
        ((f"{quantile:g}", seconds) for quantile, seconds in values),
    )


def evidence(now: datetime) -> Measure:
    lately = Evidence.objects.filter(pk__gte=id_at(now - WINDOW))
    return by(
        "evidence_recent",
        f"Evidence that came {LATELY}, by kind.",
        "kind",
        lately.values_list("kind").annotate(Count("pk")).order_by("kind"),
    )


def holds(now: datetime) -> Iterator[Measure]:
    rows = list(
        Hold.objects.filter(state=HoldState.OPEN)
        .values(slug=Coalesce("queue__slug", Value("")))
        .annotate(open=Count("pk"), late=Count("pk", filter=Q(due_at__lte=now)))
        .annotate(oldest=Min("opened_at"))
        .order_by("slug")
        .values_list("slug", "open", "late", "oldest")
    )
    yield by(
        "holds_open",
        "Cases that wait for a person, by queue.",
        "queue",
        ((slug, count) for slug, count, _, _ in rows),
    )
    yield by(
        "holds_overdue",
        "Of them, those that are late.",
        "queue",
        ((slug, late) for slug, _, late, _ in rows),
    )
    yield by(
        "holds_oldest_seconds",
        "Age of the oldest of them.",
        "queue",
        ((slug, age(oldest, now)) for slug, _, _, oldest in rows),
    )


def contradictions() -> Iterator[Measure]:
    """A second effect of one operation, or another breach of a contract, leaves an entry."""
    found = AuditEntry.objects.filter(verb="contract contradicted").count()
    yield Measure(
        "contradictions_total",
        "How often a provider broke its contract: two effects of one operation, for example.",
        (Sample(found, {}),),
        "counter",
    )


def chain(now: datetime) -> Iterator[Measure]:
    check = latest_check()
    if check is not None:
        yield one(
            "audit_chain_broken",
            "1 when the last check found the audit record broken.",
            check.broken is not None,
        )
        yield one(
            "audit_chain_checked_seconds",
            "Since the audit record was last checked.",
            age(check.at, now),
        )
