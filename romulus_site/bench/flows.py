"""The workflows that are measured. Their steps do nothing, or say when they were reached."""

from __future__ import annotations

import json
import os
import socket
import time
from datetime import timedelta
from pathlib import Path

from workflows.core.definitions import Workflow
from workflows.core.intents import Intent
from workflows.services.run_view import RunView

# Set by the bench for its children: steps of the workflow that is walked for throughput, and the
# socket at which it hears of steps at work.
STEPS = int(os.environ.get("ROMULUS_BENCH_STEPS", "50"))
EAR = os.environ.get("ROMULUS_BENCH_SOCKET", "")
CLOCKED_STEPS = 10
GATE_SECONDS = 0.02


def idle(name: str, steps: int) -> Workflow:
    """Return a workflow of `steps` steps that return 1."""
    workflow = Workflow(name, version=1)
    for number in range(1, steps + 1):

        def step(_run: RunView) -> int:
            return 1

        step.__name__ = f"step_{number}"
        workflow.step()(step)
    return workflow


def clocked(name: str, steps: int) -> Workflow:
    """Return a workflow each of whose steps returns the time. Only the last one tells the bench:
    opening a socket and waking a listener would be a good part of what is measured."""
    workflow = Workflow(name, version=1)
    for number in range(1, steps):

        def step(_run: RunView) -> float:
            return time.time()

        step.__name__ = f"step_{number}"
        workflow.step()(step)
    workflow.step()(tell)
    return workflow


def tell(run: RunView) -> float:
    """Tell the bench, if it listens, that a step of `run` is at work here; return the time."""
    return tell_of(str(run.id))


def tell_of(name: str) -> float:
    """Tell the bench that whatever has this name is at work here; return the time."""
    now = time.time()
    if EAR:
        message = json.dumps({"run": name, "pid": os.getpid(), "at": now})
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as teller:
            teller.sendto(message.encode(), EAR)
    return now


def writing(name: str, writes: int) -> Workflow:
    """Return a workflow of `writes` writes to the rehearsal destination."""
    workflow = Workflow(name, version=1)
    for number in range(1, writes + 1):

        def write(_run: RunView) -> Intent:
            return Intent(
                "refunds.create", "order BENCH", dict(REFUND), summary="Refund USD 125.00"
            )

        write.__name__ = f"write_{number}"
        workflow.write(provider=BENCH)(write)
    return workflow


BENCH = "bench"  # the provider, its tenant and its queue
REFUND = {"order": "BENCH", "amount": 12500, "currency": "USD"}
long_run = idle("bench.long", STEPS)
short_run = idle("bench.short", 1)
clocked_run = clocked("bench.clocked", CLOCKED_STEPS)
# Has every statement of a walk in it: the first step, one in between, the last.
warm_up = idle("bench.warm_up", 3)
many_writes = writing("bench.many_writes", STEPS)
one_write = writing("bench.one_write", 1)
warm_up_writes = writing("bench.warm_up_writes", 2)
EVENT_TYPE = "bench.event"


def expecting(name: str) -> Workflow:
    """Return a workflow that waits for the event with the correlation that its input names."""
    workflow = Workflow(name, version=1)

    @workflow.wait(event=EVENT_TYPE, within=timedelta(days=30))
    def arrived(run: RunView) -> str:
        correlation: str = run.input["correlation"]
        return correlation

    @workflow.step()
    def go_on(run: RunView) -> float:
        return tell(run)

    return workflow


expecting_run = expecting("bench.expecting")
# The same, of which many wait for what never comes.
parked_run = expecting("bench.parked")
stuck_run = Workflow("bench.stuck", version=1)


@stuck_run.step()
def wait_at_gate(run: RunView) -> int:
    """Stay until the file that the input names is there."""
    tell(run)
    gate = Path(run.input["gate"])
    while not gate.exists():
        time.sleep(GATE_SECONDS)
    return 1
