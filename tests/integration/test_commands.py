"""The commands: what they answer to people and scripts, and how they end when refused."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import OperationalError

from reconciliation.models import AuditEntry, Decision, Hold, Operation
from tests.commanding import type_in
from tests.deciding import seconder_of, two_needed
from tests.destination import RunningDestination
from tests.factories import (
    NOTE,
    advanced,
    code_of,
    held_operation,
    held_step_run,
    many_held,
    many_runs,
    open_hold_of,
    owner_of,
    person,
    reader,
    ready_provider,
    stranger,
    tenant,
)
from workflows.models import Run, Tenant

pytestmark = pytest.mark.django_db

REFUND = '{"order": "ORD-7001", "amount": "125.00"}'


def said(name: str, *arguments: object) -> str:
    """Run a command and return what it wrote."""
    out = io.StringIO()
    call_command(name, *map(str, arguments), stdout=out)
    return out.getvalue()


def told(name: str, *arguments: object) -> Any:
    """Run a command with --json and return its answer."""
    return json.loads(said(name, *arguments, "--json"))


def refused(name: str, *arguments: object) -> tuple[int, str]:
    """Run a command that ends with an error; return its exit code and sentence."""
    with pytest.raises(CommandError) as caught:
        said(name, *arguments)
    return caught.value.returncode, str(caught.value)


# --- start ------------------------------------------------------------------------------------


def test_start_prints_the_id_of_the_run_and_starts_once_for_each_key() -> None:
    tenant()
    first = said("start", "refund", "--input", REFUND, "--key", "ORD-7001", "--label", "shop=north")
    again = said("start", "refund", "--input", REFUND, "--key", "ORD-7001")
    run = Run.objects.get()
    assert first == again == f"{run.pk}\n"
    assert (run.labels, run.tenant.slug) == ({"shop": "north"}, "northwind")
    answer = told("start", "refund", "--input", REFUND)
    assert (answer["workflow"], answer["state"]) == ("refund", "ready")
    assert Run.objects.count() == 2


def test_start_reads_a_file_and_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant()
    (tmp_path / "input.json").write_text(REFUND)
    said("start", "refund", "--input", f"@{tmp_path / 'input.json'}")
    monkeypatch.setattr("sys.stdin", io.StringIO(REFUND))
    said("start", "refund", "--input", "-")
    assert Run.objects.count() == 2


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (
            ["nonsense", "--input", REFUND],
            1,
            "no workflow 'nonsense' here; known: approved_refund v1",
        ),
        (["refund", "--input", REFUND, "--workflow-version", 9], 1, "version 9 here; known"),
        (["refund", "--input", '{"order": "ORD-1"}'], 1, "at amount: Field required"),
        (["refund", "--input", '{"order": "x", "amount": "1.00"}'], 1, "at order: String should"),
        (["refund", "--input", "[]"], 1, "at the value itself"),
        (["refund", "--input", '{"order":\n ORD}'], 2, "at line 2, column 2"),
        (["refund", "--input", "@/nowhere/at/all.json"], 2, "cannot be read"),
        (["refund", "--input", REFUND, "--tenant", "nobody"], 1, "there are: northwind"),
        (["refund", "--input", REFUND, "--label", "x"], 2, "write NAME=VALUE"),
        (["ticket_triage", "--input", "{}"], 1, "at number: Field required (and 2 more)"),
    ],
)
def test_start_refuses_what_cannot_work_before_anything_is_stored(
    arguments: list[object], code: int, sentence: str
) -> None:
    tenant()
    ended, message = refused("start", *arguments)
    assert ended == code
    assert sentence in message
    assert not Run.objects.exists()


def test_start_refuses_an_input_that_is_too_large(settings: Any) -> None:
    tenant()
    settings.ROMULUS_MAX_INPUT_BYTES = 50
    code, sentence = refused("start", "refund", "--input", REFUND)
    assert code == 1
    assert "the limit is 50" in sentence
    assert not Run.objects.exists()


def test_start_wants_the_tenant_named_when_there_are_several() -> None:
    assert refused("start", "refund", "--input", REFUND) == (
        1,
        "there is no tenant yet: add one in the admin",
    )
    tenant()
    Tenant.objects.create(slug="southwind", name="Southwind")
    code, sentence = refused("start", "refund", "--input", REFUND)
    assert code == 2
    assert "northwind, southwind" in sentence


def test_a_start_key_that_was_used_with_another_input_is_refused() -> None:
    tenant()
    said("start", "refund", "--input", REFUND, "--key", "k")
    other = REFUND.replace("125", "126")
    code, sentence = refused("start", "refund", "--input", other, "--key", "k")
    assert code == 1
    assert "with another input" in sentence


def test_a_database_that_is_away_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> None:
        raise OperationalError("connection refused")

    tenant()
    monkeypatch.setattr("workflows.management.commands.start.start", away)
    code, sentence = refused("start", "refund", "--input", REFUND)
    assert code == 1
    assert "The database does not answer" in sentence


# --- runs, explain ----------------------------------------------------------------------------


def test_runs_are_listed_newest_first_by_what_is_asked_for() -> None:
    held, (completed,) = many_runs(2), many_runs(1, "completed")
    assert said("runs", "--ids").split() == [str(run.pk) for run in (completed, held[1], held[0])]
    assert said("runs", "--ids", "--state", "completed").split() == [str(completed.pk)]
    assert said("runs", "--ids", "--limit", 1, "--before", completed.pk).split() == [
        str(held[1].pk)
    ]
    assert said("runs", "--workflow", "other") == said("runs", "--tenant", "other") == ""
    assert "held" in said("runs").splitlines()[1]
    assert [row["state"] for row in told("runs")] == ["completed", "held", "held"]


def test_explain_says_why_what_helps_and_whose_it_is(destination: RunningDestination) -> None:
    ready_provider("desk", destination.url)
    run = held_operation(destination).run
    lines = said("explain", run.pk).splitlines()
    assert lines[0].startswith("It is held at step 3 of 4, note_in_desk.")
    assert lines[1].startswith("Helps: Someone who can see the result at the provider.")
    assert lines[2] == "Owner: reviewer_1"
    answer = told("explain", run.pk)
    assert (answer["cause"], answer["state"], answer["owner"]) == ("held", "held", "reviewer_1")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [(["explain", uuid4()], "there is no run"), (["decide", uuid4()], "that reviewer_1 may see")],
)
def test_what_is_not_there_is_said_to_be(arguments: list[object], sentence: str) -> None:
    person()
    more = (
        ["--kind", "abandon", "--note", NOTE, "--by", "reviewer_1", "--code", "0"]
        if arguments[0] == "decide"
        else []
    )
    code, message = refused(str(arguments[0]), *arguments[1:], *more)
    assert code == 1
    assert sentence in message


@pytest.mark.parametrize(
    "arguments",
    [
        ["explain", "not-an-id"],
        ["explain"],
        ["runs", "--state", "nonsense"],
        ["runs", "--limit", "0"],
        ["runs", "--limit", "many"],
        ["holds", "--nonsense"],
        ["decide", "not-an-id"],
        ["decide", str(uuid4()), "--kind", "nonsense", "--note", "x", "--by", "y"],
        [
            "decide",
            str(uuid4()),
            "--kind",
            "keep_holding",
            "--note",
            "x",
            "--by",
            "y",
            "--until",
            "tomorrow",
        ],
        ["start"],
    ],
)
def test_wrongly_called_commands_end_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        type_in(*arguments)
    assert ended.value.code == 2
    assert "error:" in capsys.readouterr().err


# --- holds, decide ----------------------------------------------------------------------------


def test_holds_are_listed_the_most_urgent_first() -> None:
    provider = ready_provider("payments")
    first, second = many_held(2, provider)
    assert said("holds", "--ids").split() == [str(first.pk), str(second.pk)]
    assert said("holds", "--overdue") == said("holds", "--queue", "other") == ""
    row = told("holds", "--limit", 1)[0]
    assert (row["id"], row["version"], row["queue"]) == (str(first.pk), 1, "payments")
    assert row["settles"] == "Someone who can see the result at the provider."
    Hold.objects.filter(pk=first.pk).update(operation=None, message="\x1b[2Jwiped")
    assert "\x1b" not in said("holds")


def decide(case: object, kind: str, by: str = "reviewer_1", **options: object) -> list[Any]:
    """The command line of a decision with a note by `by`."""
    given = {"kind": kind, "note": NOTE, "by": by} | options
    pairs = [(f"--{name.replace('_', '-')}", value) for name, value in given.items()]
    return ["decide", case, *(part for pair in pairs for part in pair)]


@pytest.fixture
def held(destination: RunningDestination) -> Operation:
    ready_provider("desk", destination.url)
    return held_operation(destination)


@pytest.mark.parametrize("named_by", ["operation", "hold"])
def test_a_decision_at_the_terminal_counts_as_one_in_the_console(
    held: Operation, named_by: str
) -> None:
    case = held.pk if named_by == "operation" else open_hold_of(held).pk
    text = said(*decide(case, "applied", resource="c_1", code=code_of(held.pk)))
    assert text == "Recorded: applied, by reviewer_1.\n"
    assert Decision.objects.get().note == NOTE
    assert advanced(held.run).state == "completed"


@pytest.mark.parametrize("named", ["hold", "run"])
def test_a_run_that_is_held_itself_is_decided_by_its_hold_or_its_own_id(named: str) -> None:
    run = held_step_run()
    hold = Hold.objects.get(run=run)
    case = {"hold": hold.pk, "run": run.pk}[named]
    wrong = refused(*decide(case, "try_again", code="nonsns"))
    assert wrong == (1, "code: These are not the last 6 of the run's ID.")

    answer = told(*decide(case, "try_again", code=code_of(run.pk)))

    assert (answer["kind"], answer["by"], answer["operation"]) == ("try_again", "reviewer_1", None)
    run.refresh_from_db()
    assert run.state == "ready"


@pytest.mark.parametrize(
    ("kind", "options", "sentence"),
    [
        ("applied", {"note": "too short"}, "note: Write a note of at least 20"),
        ("applied", {"code": "nonsns"}, "code: These are not the last 6 of the operation's ID."),
        ("applied", {}, "resource: Name the provider"),
        ("keep_holding", {}, "until: Say until when"),
        ("keep_holding", {"until": "2020-01-01T10:00"}, "until: Say until when"),
        ("send_again", {}, "no key that guards a second send"),
        ("fail_run", {}, "kind: Choose one of the decisions"),
        ("applied", {"by": "nobody"}, "no active account 'nobody'"),
        ("applied", {"resource": "c_1", "hold_version": 7}, "Nothing was recorded of yours"),
    ],
)
def test_the_rules_of_the_console_hold_at_the_terminal(
    held: Operation, kind: str, options: dict[str, object], sentence: str
) -> None:
    given = {"code": code_of(held.pk)} | options
    code, message = refused(*decide(held.pk, kind, **given))
    assert code == 1
    assert sentence in message
    assert not Decision.objects.exists()


def test_only_who_may_decide_decides(held: Operation) -> None:
    stranger()
    reader(open_hold_of(held).queue)
    options = {"resource": "c_1", "code": code_of(held.pk)}
    for by, sentence in (
        ("stranger_1", "that stranger_1 may see"),
        ("reader_1", "owners decide it"),
    ):
        code, message = refused(*decide(held.pk, "applied", by, **options))
        assert code == 1
        assert sentence in message
    get_user_model().objects.filter(username="reviewer_1").update(is_active=False)
    assert refused(*decide(held.pk, "applied", **options))[0] == 1
    assert not Decision.objects.exists()


def test_the_second_at_the_terminal_is_told_what_the_first_decided(held: Operation) -> None:
    owner_of(open_hold_of(held).queue, "reviewer_2")
    code = code_of(held.pk)
    said(*decide(held.pk, "applied", resource="c_1", code=code))
    ended, message = refused(*decide(held.pk, "abandon", "reviewer_2", code=code))
    assert ended == 1
    assert "reviewer_1 decided first" in message
    assert NOTE in message


def test_repeating_a_command_with_its_token_decides_once(held: Operation) -> None:
    options = {"resource": "c_1", "code": code_of(held.pk), "token": uuid4()}
    first = told(*decide(held.pk, "applied", **options))
    assert told(*decide(held.pk, "applied", **options)) == first
    assert Decision.objects.count() == 1


def test_without_a_terminal_the_code_has_to_be_given(
    held: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    code, message = refused(*decide(held.pk, "abandon"))
    assert code == 2
    assert "--code" in message


# --- decided by two ---------------------------------------------------------------------------


def test_two_people_decide_at_the_terminal(held: Operation) -> None:
    hold = two_needed(open_hold_of(held))
    seconder_of(hold.queue)
    code = code_of(held.pk)
    text = said(*decide(held.pk, "applied", resource="c_1", code=code))
    assert text.startswith("Proposed: applied, by reviewer_1. Nothing moves")
    (listed,) = told("holds", "--second")
    assert (listed["id"], listed["proposal"]["kind"]) == (str(hold.pk), "applied")
    assert "reviewer_1 proposes applied" in said("holds")
    ended, message = refused(*decide(held.pk, "confirm", code=code))
    assert (ended, "You proposed this" in message) == (1, True)
    answer = told(*decide(held.pk, "confirm", "second_1", code=code))
    assert (answer["kind"], answer["by"]) == ("confirmed", "second_1")
    assert Decision.objects.get().second_name == "second_1"
    assert told("holds", "--second") == []


def test_a_proposal_is_refused_or_taken_back_at_the_terminal(held: Operation) -> None:
    hold = two_needed(open_hold_of(held))
    seconder_of(hold.queue)
    code = code_of(held.pk)
    for kind, by, became in (
        ("refuse", "second_1", "refused"),
        ("withdraw", "reviewer_1", "withdrawn"),
    ):
        said(*decide(held.pk, "abandon", code=code))
        assert (
            said(*decide(held.pk, kind, by, code=code)) == f"The proposal is {became}, by {by}.\n"
        )
    assert not Decision.objects.exists()


def test_a_correction_at_the_terminal_stands_beside_the_decision(held: Operation) -> None:
    code = code_of(held.pk)
    said(*decide(held.pk, "applied", resource="c_1", code=code))
    assert told(*decide(held.pk, "correction", code=code))["kind"] == "correction"
    assert list(Decision.objects.order_by("hold_version").values_list("kind", flat=True)) == [
        "applied",
        "correction",
    ]


def test_who_starts_a_run_at_the_terminal_is_on_record() -> None:
    tenant()
    user = person()
    given = ("start", "refund", "--input", '{"order": "ORD-1", "amount": "1.00"}', "--by")
    run = Run.objects.get(pk=told(*given, "reviewer_1")["id"])
    entry = AuditEntry.objects.get(object=f"run:{run.pk}")
    assert (entry.verb, entry.actor) == ("started", f"user:{user.pk} reviewer_1")
    code, message = refused(*given, "nobody")
    assert (code, "no active account 'nobody'" in message) == (1, True)
