"""Workflows whose runs branch, loop, sleep and start others, and how a test lets them go on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models.functions import Now

from tests.factories import tenant
from workflows.core.definitions import END, Child, Workflow
from workflows.core.errors import PermanentError
from workflows.models import Run
from workflows.registry import registry
from workflows.services.children import see_ends
from workflows.services.ending import end_cancelled
from workflows.services.executor import advance
from workflows.services.ownership import Keeper
from workflows.services.run_view import RunView
from workflows.services.runs import start

MANY_VISITS = 5000

# --- ask again until it is enough, and rest between -------------------------------------------

looping = Workflow("tests.looping")


@looping.branch(to=("ask", "tell"))
def is_asked(run: RunView) -> str:
    return "ask"


@looping.step()
def ask(run: RunView) -> int:
    return run.visit


@looping.sleep()
def rest(run: RunView) -> timedelta:
    return timedelta(seconds=run.input.get("rest", 0))


@looping.branch(to=("ask", "tell", END), max_visits=MANY_VISITS)
def is_enough(run: RunView) -> str:
    return "tell" if run.visit >= run.input["times"] else "ask"


@looping.step()
def tell(run: RunView) -> str:
    return "told"


# --- three branches side by side: one ends, one is held, one sleeps ---------------------------

parted = Workflow("tests.parted")


@parted.step()
def load(run: RunView) -> int:
    return 1


@parted.step()
def pack(run: RunView) -> str:
    return "packed"


@parted.step()
def label(run: RunView) -> str:
    return "labelled"


@parted.step(on_failure="hold")
def bill(run: RunView) -> str:
    raise PermanentError("the tax number is not known")


@parted.step()
def send(run: RunView) -> str:
    return "sent"


@parted.sleep()
def wait(run: RunView) -> timedelta:
    return timedelta(hours=5)


parted.parallel([pack, label], [bill, send], wait, name="ship")


@parted.step()
def close(run: RunView) -> str:
    return "closed"


# --- many runs of another workflow ------------------------------------------------------------

batch = Workflow("tests.batch")
item = Workflow("tests.item")


@batch.children(at_once=4)
def collect(run: RunView) -> list[Child]:
    """One run for each letter: `c` completes, `h` is held, `f` fails, `s` sleeps."""
    return [
        Child("tests.item", {"does": does}, labels={"file": f"{number:03}"})
        for number, does in enumerate(run.input["does"])
    ]


@batch.step()
def report(run: RunView) -> int:
    return len(run.output("collect"))


@item.branch(to=("hold", "fail", "doze", END))
def what(run: RunView) -> str:
    return {"h": "hold", "f": "fail", "s": "doze"}.get(run.input["does"], END)


@item.step(on_failure="hold", then=END)
def hold(run: RunView) -> None:
    raise PermanentError("line 17 is no number")


@item.step(then=END)
def fail(run: RunView) -> None:
    raise PermanentError("the file is empty")


@item.sleep(then=END)
def doze(run: RunView) -> timedelta:
    return timedelta(hours=1)


def begun(flow: Workflow, key: str | None = None, **input: Any) -> Run:
    """A run of `flow` that no worker has taken."""
    for each in (looping, parted, batch, item):
        registry.add(each)
    return start(flow.name, input, tenant=tenant(), start_key=key)


def driven(flow: Workflow, key: str | None = None, **input: Any) -> Run:
    """A run of `flow`, taken with all that it starts as far as they go now."""
    run = begun(flow, key, **input)
    drive()
    run.refresh_from_db()
    return run


def drive(keeper: Keeper | None = None) -> None:
    """Do what workers and sweep would do now, until nothing changes."""
    keeper = keeper or Keeper()
    while True:
        due = Run.objects.filter(state="ready", ready_at__lte=Now(), paused_at=None)
        before = dict(due.values_list("pk", "fence"))
        for run in before:
            advance(run, keeper)
        see_ends()
        end_cancelled()
        after = dict(due.values_list("pk", "fence"))
        if after == before:
            return
