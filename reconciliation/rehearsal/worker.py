"""A worker of a rehearsal: `python -m reconciliation.rehearsal.worker PROVIDER`.

Reads run IDs, one a line, takes each as far as workers and the sweep together would, and writes
the ID back when the run is over or held. No broker: messages are hints, and other workers of the
site do not have this workflow. It dies where `ROMULUS_FAILPOINTS` says.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from workflows.services.ownership import Keeper

POLL_SECONDS = 0.05
READY = "ready"


def main(provider: str) -> None:
    import django

    django.setup()
    from reconciliation.rehearsal.flow import known_flow
    from workflows.services.ownership import this_process

    known_flow(provider)
    keeper = this_process()
    say(READY)
    for line in sys.stdin:
        run = UUID(line.strip())
        while not rests(run, keeper):
            time.sleep(POLL_SECONDS)
        say(str(run))
    keeper.stop()


def rests(run: UUID, keeper: Keeper) -> bool:
    """Do what is due of a run; say whether only a person could go on with it, or nobody."""
    from reconciliation.models import Operation
    from reconciliation.services.reconcile import reconcile
    from workflows.core.states import FINAL_RUN_STATES, RunState
    from workflows.models import Run
    from workflows.services.executor import advance

    advance(run, keeper)
    for operation in Operation.objects.filter(run=run, due_at__isnull=False):
        reconcile(operation.pk)
    state = Run.objects.values_list("state", flat=True).get(pk=run)
    return state in (*FINAL_RUN_STATES, RunState.HELD)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
