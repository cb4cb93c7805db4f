"""The tortured workflows. What each step must give is in `answers`, beside its input alone.

Three kinds of side effect are left behind for the checks: lines in a journal beside the database,
written while a step runs; rows that an atomic step writes; and resources at the rehearsal
destination, which a write step makes.
"""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db import connection

from romulus_site.torture import answers
from romulus_site.torture.sendings import TYPE, correlation_of
from workflows.core.definitions import END, Child, Workflow
from workflows.core.errors import PermanentError
from workflows.core.intents import Intent
from workflows.core.retry import RetryPolicy
from workflows.services.run_view import RunView

QUICK = RetryPolicy(attempts=4, first_delay=timedelta(seconds=0.1), jitter=0.5)
# Of one output: what people purge meanwhile.
RETAIN = timedelta(seconds=2)
MARKS = "torture_mark"
STANDING_SECONDS = 0.05


class Stumble(Exception):
    """As a step fails that is tried again."""


class Broken(PermanentError):
    """As a step fails for good."""


# --- side effects -----------------------------------------------------------------------------


def journal_of(data: Path) -> Path:
    return data / "torture-journal"


def stands_no_more(data: Path) -> Path:
    """The file whose being there lets what stands still go on."""
    return data / "torture-go-on"


def attempt_of(run: RunView) -> str:
    """The ID of the attempt that is under way; authors are shown the number of the try alone."""
    return str(run._claim.attempt)


def jot(run: RunView) -> str:
    """Work a little, with a line before and one after; return whose attempt it was."""
    attempt = attempt_of(run)
    write_line(f"begun {attempt}")
    time.sleep(run.input["seconds"])
    write_line(f"done {attempt}")
    return attempt


def write_line(line: str) -> None:
    # One write of one line, appended: the lines of several processes do not mix.
    journal = os.open(journal_of(settings.ROMULUS_DATA), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(journal, f"{line}\n".encode())
    finally:
        os.close(journal)


def mark(run: RunView, step: str) -> None:
    """Write a row in the transaction of an atomic step."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {MARKS} (run, step, visit, attempt) VALUES (%s, %s, %s, %s)",  # noqa: S608
            [run.id, step, run.visit, attempt_of(run)],
        )


def stumble(run: RunView) -> None:
    """Fail as often as the input says: a failed try and one whose worker was lost both count."""
    if run.attempt <= run.input.get("stumbles", 0):
        raise Stumble(f"try {run.attempt}")


def stand(run: RunView) -> None:
    """Stand still, if it is to, until somebody was struck for it: in its first try alone."""
    while run.attempt == 1 and not stands_no_more(settings.ROMULUS_DATA).exists():
        time.sleep(STANDING_SECONDS)


# --- a walk: retries, a loop, an atomic step, a sleep, large and sealed outputs ---------------

walk = Workflow("torture.walk")


@walk.step(retries=QUICK)
def begin(run: RunView) -> int:
    stumble(run)
    if run.input.get("stands"):
        stand(run)
    time.sleep(run.input["linger"])
    return answers.begin(run.input)


@walk.step()
def note(run: RunView) -> answers.Note:
    return answers.Note(jot(run), answers.note(run.input, run.visit))


@walk.step(atomic=True, retries=QUICK)
def book(run: RunView) -> int:
    mark(run, "book")
    stumble(run)
    return answers.book(run.input, run.visit)


@walk.branch(to=("note", "rest"))
def again(run: RunView) -> str:
    return answers.again(run.input, run.visit)


@walk.sleep()
def rest(run: RunView) -> timedelta:
    return timedelta(seconds=run.input["nap"])


@walk.step(retain=RETAIN)
def fill(run: RunView) -> str:
    return answers.fill(run.input)


@walk.step(sensitive=True)
def whisper(run: RunView) -> str:
    return answers.whisper(run.input)


@walk.step()
def add_up(run: RunView) -> int:
    """Read what was left on the way: in the row, sealed, and in the storage."""
    noted: answers.Note = run.output("note")
    texts = len(run.output("fill")) + len(run.output("whisper"))
    total: int = run.output("begin") + noted.value + run.output("book") + texts
    return total


# --- leaves, and those who start them ---------------------------------------------------------

leaf = Workflow("torture.leaf")


@leaf.step()
def grow(run: RunView) -> answers.Note:
    return answers.Note(jot(run), answers.note(run.input, run.visit))


@leaf.sleep()
def ripen(run: RunView) -> timedelta:
    return timedelta(seconds=run.input["nap"])


@leaf.step()
def fall(run: RunView) -> int:
    if run.input.get("broken"):
        raise Broken("this leaf was to fail")
    return answers.fall(run.input)


def leaves(run: RunView, broken: bool = False) -> list[Child]:
    inputs = answers.leaves(run.input, broken=broken and run.input["broken"])
    return [Child(leaf.name, each) for each in inputs]


family = Workflow("torture.family")


@family.children(at_once=2)
def raise_all(run: RunView) -> list[Child]:
    return leaves(run, broken=True)


@family.step(atomic=True)
def count(run: RunView) -> int:
    mark(run, "count")
    return sum(end.result for end in run.output("raise_all") if end.state == "completed")


@family.children(join="first")
def race(run: RunView) -> list[Child]:
    return leaves(run)


@family.step()
def crown(run: RunView) -> int:
    return sum(end.state == "completed" for end in run.output("race"))


strict = Workflow("torture.strict")


@strict.children(join="any_failure")
def all_or_none(run: RunView) -> list[Child]:
    return leaves(run, broken=True)


@strict.step()
def praise(run: RunView) -> int:
    return sum(end.result for end in run.output("all_or_none"))


# --- branches side by side --------------------------------------------------------------------

group = Workflow("torture.group")


@group.step()
def split(run: RunView) -> int:
    return answers.begin(run.input)


@group.step()
def pack(run: RunView) -> answers.Note:
    return answers.Note(jot(run), answers.note(run.input, run.visit))


@group.step(retries=QUICK)
def bill(run: RunView) -> int:
    stumble(run)
    if run.input["broken"]:
        raise Broken("this branch was to fail")
    return answers.bill(run.input)


@group.step(atomic=True)
def post(run: RunView) -> int:
    mark(run, "post")
    billed: int = run.output("bill")
    return billed + 1


group.parallel("pack", ["bill", "post"], name="side_by_side")


@group.step()
def join(run: RunView) -> int:
    packed: answers.Note = run.output("pack")
    return packed.value + int(run.output("post"))


# --- writes: to a provider with keys, one with look-ups, one with neither ----------------------

pay = Workflow("torture.pay")


@pay.step()
def bargain(run: RunView) -> answers.Note:
    return answers.Note(jot(run), answers.note(run.input, run.visit))


@pay.write(provider="torture-keyed")
def refund(run: RunView) -> Intent:
    return Intent(
        action="refunds.create",
        target=f"order {run.input['thing']}",
        parameters={
            "amount": answers.begin(run.input),
            "currency": "eur",
            # Each visit is another operation, and its faults are armed by this name.
            "order": answers.thing(run.input, run.visit),
        },
        summary=f"Refund order {run.input['thing']}",
    )


@pay.step()
def receipt(run: RunView) -> answers.Receipt:
    return answers.Receipt(jot(run), run.output("refund")["resource"])


@pay.branch(to=("refund", END))
def more(run: RunView) -> str:
    return answers.more(run.input, run.visit)


rent = Workflow("torture.rent")


@rent.write(provider="torture-lookup")
def machine(run: RunView) -> Intent:
    return Intent(
        action="machines.create",
        target=f"machine {run.input['thing']}",
        parameters={
            "name": answers.thing(run.input, run.visit),
            "size": "small",
            "zone": "north-1a",
        },
        summary=f"Rent machine {run.input['thing']}",
    )


@rent.step(atomic=True)
def enter(run: RunView) -> str:
    mark(run, "enter")
    resource: str = run.output("machine")["resource"]
    return resource


tell = Workflow("torture.tell")


@tell.write(provider="torture-blind")
def comment(run: RunView) -> Intent:
    return Intent(
        action="comments.create",
        target=f"ticket {run.input['thing']}",
        parameters={
            "ticket": str(run.input["n"]),
            "body": answers.thing(run.input, run.visit),
        },
        summary=f"Comment on ticket {run.input['thing']}",
    )


@tell.step()
def close(run: RunView) -> answers.Receipt:
    return answers.Receipt(jot(run), run.output("comment")["resource"])


# --- a question: its answer comes as an event, or its deadline does -----------------------------

question = Workflow("torture.question")


def patience(run: RunView) -> timedelta:
    return timedelta(seconds=run.input["patience"])


@question.step()
def pose(run: RunView) -> answers.Note:
    return answers.Note(jot(run), answers.note(run.input, run.visit))


@question.wait(event=TYPE, within=patience, on_deadline="go_without")
def answered(run: RunView) -> str:
    return correlation_of(run.input["n"])


@question.step(then=END)
def take_in(run: RunView) -> answers.Reply:
    event = run.output("answered")
    return answers.Reply(jot(run), event.event_id, event.payload["value"])


@question.step()
def go_without(run: RunView) -> answers.Reply:
    return answers.Reply(jot(run), "", 0)


JOTTING = frozenset(
    {"note", "grow", "pack", "bargain", "receipt", "close", "pose", "take_in", "go_without"}
)
MARKING = frozenset({"book", "count", "post", "enter"})
