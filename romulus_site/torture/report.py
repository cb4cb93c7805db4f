"""What is said after a torture: what was done, what came of it, and every breach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from romulus_site.torture import broker
from romulus_site.torture.checks import CHECKS, Breach, held
from romulus_site.torture.checks.ends import end_of
from romulus_site.torture.record import Record
from workflows.core.states import AttemptState

MOST_SHOWN = 20  # breaches of one check


def document_of(
    record: Record, breaches: list[Breach], *, owns_server: bool, seconds: float
) -> dict[str, Any]:
    plan, performance = record.plan, record.performance
    attempts = Counter(attempt.state for attempt in record.attempts)
    return {
        "torture": "clean" if not breaches else "breached",
        "seed": plan.seed,
        "database": "embedded" if owns_server else "server",
        "broker": broker.name(),
        "seconds": round(seconds, 1),
        "peace_seconds": round(performance.peace_seconds, 1),
        "runs": {
            "planned": len(plan.runs),
            "all": len(record.runs),
            "ends": dict(Counter(end_of(record, run) for run in record.runs).most_common()),
        },
        "attempts": {str(state): attempts[state] for state in AttemptState if attempts[state]},
        "operations": dict(Counter(operation.state for operation in record.operations)),
        "for_people": held.counted(record),
        "transmissions": dict(Counter(row.state for row in record.transmissions)),
        "effects": len(record.effects),
        "decisions": len(record.decisions),
        "deliveries": dict(Counter(each.outcome for each in performance.deliveries)),
        "events": dict(Counter(event.state for event in record.events)),
        "waits": dict(Counter(wait.state for wait in record.waits)),
        "blows": performance.blows,
        "died_at": sorted([*performance.deaths_at, *performance.clerk_deaths]),
        "workers": performance.workers,
        "slowest": list(performance.slowest),
        "stalls": [round(stall, 1) for stall in performance.stalls],
        "server_restarts": owns_server,
        "checks": [check.name for check in CHECKS],
        "breaches": [{"check": each.check, "message": each.message} for each in breaches],
    }


def lines_of(document: dict[str, Any]) -> Iterator[str]:
    runs = document["runs"]
    yield (
        f"Seed {document['seed']}: {runs['planned']} runs were started, {runs['all']} with their "
        f"children; {document['workers']} workers, {document['database']} database, broker "
        f"{document['broker']}; {document['seconds']} s, of which {document['peace_seconds']} s "
        "in peace"
    )
    if not document["server_restarts"]:
        yield "The database server is not ours: instead of a restart, all sessions were cut."
    yield f"  blows:         {counted(document['blows'])}"
    yield f"  died at:       {', '.join(document['died_at']) or 'no failpoint'}"
    yield f"  ends:          {counted(runs['ends'])}"
    yield f"  attempts:      {counted(document['attempts'])}"
    yield f"  operations:    {counted(document['operations'])}"
    people = document["for_people"]
    yield f"  for people:    {people['held']} are held; by the model {people['by_model']} must be"
    yield f"  transmissions: {counted(document['transmissions'])}"
    yield f"  effects:       {document['effects']}; decisions: {document['decisions']}"
    yield (
        f"  events:        sent: {counted(document['deliveries'])}; kept: "
        f"{counted(document['events'])}; waits: {counted(document['waits'])}"
    )
    what, seconds = document["slowest"]
    yield f"  slowest:       {what}, {seconds:.1f} s"
    stalls = document["stalls"]
    yield f"  stood still:   {len(stalls)} times, for {max(stalls, default=0)} s at most"
    yield from breach_lines(document)


def breach_lines(document: dict[str, Any]) -> Iterator[str]:
    says = {check.name: check.says for check in CHECKS}
    found: dict[str, list[str]] = {}
    for breach in document["breaches"]:
        found.setdefault(breach["check"], []).append(breach["message"])
    for name, messages in found.items():
        yield f"BREACH of {name!r}: {says[name]}; found {len(messages)} times:"
        yield from (f"  {message}" for message in messages[:MOST_SHOWN])
        if len(messages) > MOST_SHOWN:
            yield f"  and {len(messages) - MOST_SHOWN} more"
    kept = len(document["checks"]) - len(found)
    yield (
        f"All {kept} promises that were checked are kept."
        if not found
        else f"{len(found)} of {len(document['checks'])} promises are broken."
    )


def counted(numbers: dict[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in numbers.items()) or "none"
