"""`cancel`, `pause`, `resume` and `explain` at the terminal: what is done, told, and refused."""

from __future__ import annotations

import getpass
import io
import json
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from reconciliation.models import AuditEntry, Hold
from tests.commanding import type_in
from tests.destination import RunningDestination
from tests.factories import held_operation, many_runs, ready_provider, started_run, tenant
from tests.flows import batch, driven
from workflows.models import Pause, Run
from workflows.services import pauses
from workflows.services.stopping import pause_run

pytestmark = pytest.mark.django_db

WHY = ("--reason", "The provider is being moved.")
HERE = f"command:{getpass.getuser()}"


@pytest.fixture(autouse=True)
def forgotten() -> None:
    """What an earlier test has paused is not remembered."""
    pauses.forget()


def said(name: str, *arguments: object) -> str:
    out = io.StringIO()
    call_command(name, *map(str, arguments), stdout=out)
    return out.getvalue()


def told(name: str, *arguments: object) -> Any:
    return json.loads(said(name, *arguments, "--json"))


def refused(name: str, *arguments: object) -> tuple[int, str, str]:
    """Exit code, sentence, and what was written before."""
    out = io.StringIO()
    with pytest.raises(CommandError) as caught:
        call_command(name, *map(str, arguments), stdout=out)
    return caught.value.returncode, str(caught.value), out.getvalue()


def again(run: Run) -> Run:
    run.refresh_from_db()
    return run


# --- cancel -----------------------------------------------------------------------------------


def test_cancelling_ends_runs_and_records_whose_wish_it_was() -> None:
    first, second = many_runs(2, "ready")
    assert said("cancel", first.pk, second.pk, *WHY) == (
        f"{first.pk}  It is cancelled.\n{second.pk}  It is cancelled.\n"
    )
    assert again(first).state == again(second).state == "cancelled"
    assert first.cancel_asked_by == HERE
    entry = AuditEntry.objects.get(object=f"run:{first.pk}", verb="run cancelled")
    assert (entry.actor, entry.detail) == (HERE, {"reason": WHY[1]})


def test_a_write_whose_outcome_is_open_is_settled_first(destination: RunningDestination) -> None:
    ready_provider("desk", destination.url)
    operation = held_operation(destination)
    (answer,) = told("cancel", operation.run_id, *WHY, "--by", "ada")
    assert (answer["done"], answer["changed"], answer["state"]) == (True, True, "held")
    assert f"first it is settled what became of “{operation.summary}”" in answer["message"]
    # Again is harmless; somebody else is told who was first.
    (same,) = told("cancel", operation.run_id, "--by", "ada")
    assert (same["done"], same["changed"]) == (True, False)
    assert "was asked for already" in same["message"]
    (theirs,) = told("cancel", operation.run_id, "--by", "bo")
    assert (theirs["done"], theirs["changed"]) == (True, False)
    assert theirs["message"].startswith("ada asked for its end first, at ")
    assert AuditEntry.objects.filter(verb="run cancelled").count() == 1
    assert Hold.objects.get().state == "open"


def test_what_is_over_is_refused_unless_it_is_cancelled_already() -> None:
    (done,), (gone,) = many_runs(1, "completed"), many_runs(1, "cancelled")
    assert said("cancel", gone.pk) == f"{gone.pk}  It is cancelled already. Nothing was changed.\n"
    code, sentence, written = refused("cancel", done.pk, gone.pk)
    assert code == 1
    assert sentence == "1 of 2 not done: It is completed already. Nothing was changed."
    assert str(gone.pk) in written


def test_the_others_are_cancelled_though_one_is_not_there() -> None:
    (run,), nowhere = many_runs(1, "ready"), uuid4()
    code, sentence, _ = refused("cancel", nowhere, run.pk, run.pk)
    assert (code, sentence) == (1, f"1 of 2 not done: There is no run {nowhere}.")
    assert again(run).state == "cancelled"


def test_cancelling_a_run_ends_those_that_it_started() -> None:
    run = driven(batch, does="chss")
    said("cancel", run.pk, *WHY)
    assert set(run.children.filter(cancel_asked_at=None).values_list("state", flat=True)) == {
        "completed"
    }


# --- pause, resume ----------------------------------------------------------------------------


def test_a_run_is_paused_and_resumed_and_twice_is_harmless() -> None:
    run = started_run()
    for changed in (True, False):
        (answer,) = told("pause", run.pk, *WHY)
        assert (answer["done"], answer["changed"], answer["state"]) == (True, changed, "ready")
    assert again(run).paused_by == HERE
    for changed in (True, False):
        (answer,) = told("resume", run.pk)
        assert (answer["done"], answer["changed"]) == (True, changed)
    assert again(run).paused_at is None
    verbs = AuditEntry.objects.order_by("seq").values_list("verb", flat=True)
    assert list(verbs) == ["run paused", "run resumed"]


def test_who_comes_second_is_told_who_was_first() -> None:
    run = started_run()
    pause_run(run.pk, by="user:3 ada")
    text = said("pause", run.pk)
    assert "ada paused it first, at " in text
    assert text.endswith("Nothing was changed, and yours is not recorded.\n")
    assert again(run).paused_by == "user:3 ada"


@pytest.mark.parametrize("command", ["pause", "resume"])
def test_what_is_over_is_neither_paused_nor_resumed(command: str) -> None:
    (run,) = many_runs(1, "failed")
    code, sentence, _ = refused(command, run.pk)
    assert code == 1
    assert "It is failed already" in sentence


def test_a_workflow_for_a_tenant_is_paused_once_and_resumed() -> None:
    northwind = tenant()
    scope = ("--workflow", "refund", "--tenant", "northwind")
    assert said("pause", *scope, *WHY, "--by", "ada") == (
        f"Paused: workflow refund for tenant northwind, by ada: {WHY[1]}\n"
    )
    answer = told("pause", *scope, "--reason", "Another one.")
    assert (answer["changed"], answer["by"], answer["reason"]) == (False, "ada", WHY[1])
    assert (answer["workflow"], answer["tenant"]) == ("refund", "northwind")
    pause = Pause.objects.get()
    assert (pause.workflow, pause.tenant) == ("refund", northwind)
    # Exactly that pause is taken back, and no other.
    other = said("resume", "--workflow", "refund")
    assert other == (
        "There is no pause of workflow refund. There are: workflow refund for tenant northwind, "
        f"by ada: {WHY[1]}\n"
    )
    assert told("resume", *scope)["changed"]
    assert not Pause.objects.exists()
    assert not told("resume", *scope)["changed"]


def test_a_tenant_is_paused_by_its_slug() -> None:
    tenant()
    assert "Paused: tenant northwind" in said("pause", "--tenant", "northwind", *WHY)
    assert Pause.objects.get().workflow == ""


@pytest.mark.parametrize(
    ("command", "arguments", "code", "sentence"),
    [
        ("pause", [], 2, "name runs by their IDs, or --workflow NAME"),
        ("resume", [], 2, "name runs by their IDs, or --workflow NAME"),
        ("pause", [uuid4(), "--workflow", "refund"], 2, "not both"),
        ("pause", ["--workflow", "refund"], 2, "--reason: say why"),
        ("pause", ["--workflow", "refnud", *WHY], 1, "no workflow 'refnud'"),
        ("resume", ["--workflow", "refnud"], 1, "no workflow 'refnud', and no run of it; known: "),
        ("pause", ["--tenant", "nobody", *WHY], 1, "there are: northwind"),
        ("pause", ["--workflow", "refund", *WHY, "--by", ""], 2, "--by"),
        ("cancel", [uuid4(), "--by", "x" * 151], 2, "--by"),
        ("pause", ["--workflow", "refund", "--reason", "x" * 501], 1, "500 characters"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_changes_nothing(
    command: str, arguments: list[object], code: int, sentence: str
) -> None:
    tenant()
    ended, message, _ = refused(command, *arguments)
    assert (ended, sentence in message) == (code, True), message
    assert not Pause.objects.exists()


def test_a_workflow_that_only_runs_know_can_be_paused() -> None:
    many_runs(1, "ready", workflow="gone_from_the_code")
    assert told("pause", "--workflow", "gone_from_the_code", *WHY)["changed"]


@pytest.mark.parametrize(
    "arguments", [["cancel"], ["cancel", "not-an-id"], ["pause", "not-an-id"], ["resume", "x"]]
)
def test_wrongly_called_commands_end_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        type_in(*arguments)
    assert ended.value.code == 2
    assert "error:" in capsys.readouterr().err


# --- explain, runs ----------------------------------------------------------------------------


def test_explain_tells_the_facts_behind_its_sentence() -> None:
    run = started_run()
    pause_run(run.pk, by="user:3 ada", reason="The auditor is here.")
    run.refresh_from_db()
    answer = told("explain", run.pk)
    assert (answer["cause"], answer["owner"]) == ("run_paused", "ada")
    assert answer["facts"]["step"] == "load_order"
    assert answer["facts"]["paused"] == [
        {
            "what": "the run",
            "by": "user:3 ada",
            "at": run.paused_at.isoformat() if run.paused_at else "",
            "reason": "The auditor is here.",
        }
    ]
    lines = said("explain", run.pk).splitlines()
    assert lines[1:4] == ["Helps: Resuming the run.", "Owner: ada", "Facts:"]
    assert any("reason The auditor is here." in line for line in lines)


def test_runs_lists_those_that_others_started_only_when_asked() -> None:
    run = driven(batch, does="chs")
    assert said("runs", "--ids").split() == [str(run.pk)]
    assert len(said("runs", "--ids", "--with-children").split()) == 4
    rows = told("runs", "--parent", run.pk)
    assert [row["parent"] for row in rows] == [str(run.pk)] * 3
    pause_run(run.pk, by="ada")
    assert said("runs").endswith("collect  paused\n")
