"""What `cancel`, `pause` and `resume` share: whose wish it is, which runs, and how each answers."""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from workflows.core.controls import Control
from workflows.core.words import who
from workflows.management.base import ConsoleCommand, Refused, WrongUse, an_id
from workflows.models import Pause, Run, Tenant
from workflows.registry import registry
from workflows.services.controls import control_run
from workflows.services.stopping import MAX_BY


def wish_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reason", default="", help="why, for the record")
    parser.add_argument(
        "--by", default=f"command:{operator()}", metavar="NAME", help="who wishes it (%(default)s)"
    )


def operator() -> str:
    """The account of the operating system that gives the command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account without a name, as in some containers
        return "unknown"


def scope_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="*", type=an_id, metavar="RUN", help="IDs of runs")
    parser.add_argument("--workflow", default="", metavar="NAME", help="every run of it")
    parser.add_argument("--tenant", metavar="SLUG", help="every run of it")


# --- runs -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """What came of the wish for one run."""

    id: UUID
    done: bool
    changed: bool
    state: str
    message: str

    def document(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "done": self.done,
            "changed": self.changed,
            "state": self.state,
            "message": self.message,
        }


def control_runs(command: ConsoleCommand, given: argparse.Namespace, control: Control) -> None:
    """Do it to each of the runs that are named, tell of each, and refuse where one was not done."""
    check_by(given.by)
    answers = [control_one(run, control, given) for run in dict.fromkeys(given.runs)]
    lines = [f"{answer.id}  {answer.message}" for answer in answers]
    command.answer(given, [answer.document() for answer in answers], lines)
    undone = [answer for answer in answers if not answer.done]
    if undone:
        raise Refused(f"{len(undone)} of {len(answers)} not done: {undone[0].message}")


def control_one(run: UUID, control: Control, given: argparse.Namespace) -> Answer:
    if not Run.objects.filter(pk=run).exists():
        return Answer(run, False, False, "", f"There is no run {run}.")
    outcome = control_run(run, control, by=given.by, reason=given.reason)
    state = Run.objects.values_list("state", flat=True).get(pk=run)
    return Answer(run, outcome.done, outcome.changed, state, outcome.sentence)


def check_by(by: str) -> None:
    if not by or len(by) > MAX_BY:
        raise WrongUse(f"--by: a name of 1 to {MAX_BY} characters")


# --- a workflow, a tenant ---------------------------------------------------------------------


def check_scope(given: argparse.Namespace) -> bool:
    """Return whether a workflow or a tenant is meant; refuse what can be understood two ways."""
    whole = bool(given.workflow or given.tenant)
    if whole and given.runs:
        raise WrongUse("name runs, or a workflow and a tenant, not both")
    if not whole and not given.runs:
        raise WrongUse("name runs by their IDs, or --workflow NAME, --tenant SLUG or both")
    check_by(given.by)
    return whole


def workflow_of(name: str) -> str:
    """The workflow's name, if there is such a workflow: a misspelt pause would pause nothing."""
    known = sorted({workflow for workflow, _ in registry.pairs()})
    if not name or name in known or Run.objects.filter(workflow=name).exists():
        return name
    raise Refused(f"there is no workflow {name!r}, and no run of it; known: {', '.join(known)}")


def tenant_of(slug: str | None) -> Tenant | None:
    if slug is None:
        return None
    found = Tenant.objects.filter(slug=slug).first()
    if found is None:
        names = ", ".join(Tenant.objects.order_by("slug").values_list("slug", flat=True))
        raise Refused(f"there is no tenant {slug!r}; there are: {names or 'none'}")
    return found


def as_json(pause: Pause, *, changed: bool) -> dict[str, Any]:
    return {
        "workflow": pause.workflow,
        "tenant": pause.tenant.slug if pause.tenant else None,
        "by": pause.by,
        "reason": pause.reason,
        "at": pause.at.isoformat(),
        "changed": changed,
    }


def line_of(pause: Pause) -> str:
    return f"{name_of(pause.workflow, pause.tenant)}, by {who(pause.by)}: {pause.reason}"


def name_of(workflow: str, tenant: Tenant | None) -> str:
    parts: Sequence[str] = [
        *([f"workflow {workflow}"] if workflow else []),
        *([f"tenant {tenant.slug}"] if tenant else []),
    ]
    return " for ".join(parts)


def listed(pauses: Iterable[Pause]) -> str:
    return "; ".join(line_of(pause) for pause in pauses) or "none"
