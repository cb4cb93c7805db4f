"""Case A13: one run kills every worker that touches it, beside fifty that are well.

Shrunk: a lease of 3 s instead of 15. The workers are started again by the product's own
supervisor, as `manage.py up` has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db.models import Count, Q
from django.urls import reverse

from reconciliation.models import Hold, ReviewQueue
from romulus_site import parts
from romulus_site.processes import Supervisor, Surroundings
from tests.acceptance.payfake import (
    all_over,
    attempts,
    console,
    effects,
    explained,
    order_run,
    page_of,
    payfake,
    states_of,
    the_operation,
)
from tests.acceptance.refunding import passages
from tests.deciding import TRY_AGAIN, decide
from tests.destination import RunningDestination
from tests.factories import owner_of
from tests.waiting import wait_for
from tests.workers import ROOT, Crew, environment_of
from workflows.core.retry import MAX_LOST_ATTEMPTS
from workflows.models import Run

pytestmark = pytest.mark.processes

POISONED = "ORD-7013"
HEALTHY = 50
LIMIT = 120.0


@contextmanager
def supervised(workers: Crew) -> Iterator[Callable[[Callable[[], object], str], None]]:
    """Two workers that are started again when they die; gives a way to wait meanwhile."""
    surroundings = Surroundings(ROOT, environment_of(workers.database_url))
    supervisor = Supervisor(workers.folder, surroundings, lambda _: None)
    supervisor.start([parts.worker(number, 2) for number in (1, 2)])

    def wait(condition: Callable[[], object], what: str) -> None:
        def looked() -> object:
            supervisor.tend()
            return condition()

        wait_for(looked, what, limit=LIMIT)

    try:
        yield wait
    finally:
        supervisor.stop()


def lost(run: Run) -> int:
    """How many workers were written down as lost at it, and that in the run's own count."""
    rows = Count("attempts", filter=Q(attempts__state="lost"))
    counted: tuple[int, int] = (
        Run.objects.annotate(rows=rows).values_list("losses", "rows").get(pk=run.pk)
    )
    assert counted[0] == counted[1]
    return counted[0]


def test_a13_a_run_that_kills_its_workers_is_set_aside_and_the_others_finish(
    workers: Crew, destination: RunningDestination, tmp_path: Path
) -> None:
    payfake(destination)
    owner_of(ReviewQueue.objects.create(slug="runs", name="Runs"))
    poison = tmp_path / f"{POISONED}.poison"
    poison.touch()
    healthy = [order_run(tmp_path, f"ORD-{n}", "counted") for n in range(HEALTHY // 2)]
    poisoned = order_run(tmp_path, POISONED)
    healthy += [order_run(tmp_path, f"ORD-{n}", "counted") for n in range(HEALTHY // 2, HEALTHY)]

    with supervised(workers) as wait:
        wait(lambda: lost(poisoned), "a first worker is lost at it")
    before = lost(poisoned)
    with supervised(workers) as wait:
        wait(lambda: Run.objects.get(pk=poisoned.pk).state == "held", "it is set aside")
        assert 0 < before < MAX_LOST_ATTEMPTS  # so the count has survived the restart
        wait(lambda: states_of(healthy) == {"completed": HEALTHY}, "the others are completed")
        assert_set_aside(poisoned, tmp_path)

        poison.unlink()
        decide(Hold.objects.get(run=poisoned), TRY_AGAIN)
        wait(lambda: Run.objects.get(pk=poisoned.pk).state == "completed", "it is completed")
    operation = the_operation(poisoned)
    assert (operation.state, effects(destination, operation)) == ("verified", 1)
    for number in range(HEALTHY):
        assert passages(tmp_path, f"ORD-{number}", "three") >= 1


def assert_set_aside(run: Run, folder: Path) -> None:
    """Tried as often as is allowed and no more; said to its owner with the reason."""
    all_over(run)
    lost_tries = [("prepare", "lost")] * MAX_LOST_ATTEMPTS
    assert attempts(run) == [*lost_tries, ("prepare", "committed")]  # the last one only held it
    assert passages(folder, POISONED, "prepare") == MAX_LOST_ATTEMPTS
    assert run.failure["reason"] == "workers_lost"
    says = "3 workers went quiet at step prepare. It may be what ends them."
    why = explained(run)
    assert (why["cause"], says in why["sentence"], why["owner"]) == ("held", True, "reviewer_1")
    client = console()
    page = page_of(run, client)
    assert says in f"{page.why.lead} {page.why.text}"
    queue = client.get(reverse("review")).content.decode()
    assert page.why.links[0].url in queue
