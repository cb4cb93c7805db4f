"""The command: what would move and what not, changing nothing; then moving, and how it ends."""

from __future__ import annotations

import io
import json
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db.models import F
from django.db.models.functions import Now

from reconciliation.models import AuditEntry, Provider
from tests.destination import RunningDestination
from tests.factories import (
    advanced,
    many_runs,
    ready_provider,
    switched,
    tenant,
)
from tests.migrating import FLOW, asleep, everything, first_run, small
from tests.statements import statements
from tests.versions import NAME, first_version, process_with, second_version
from workflows.models import Run
from workflows.services.runs import start

pytestmark = pytest.mark.django_db


@pytest.fixture
def payments(destination: RunningDestination) -> RunningDestination:
    ready_provider("payments", destination.url)
    return destination


def said(*arguments: object) -> tuple[int, str]:
    """Run the command; return its exit code and what it wrote, its last sentence included."""
    out = io.StringIO()
    try:
        call_command("migrate_runs", *map(str, arguments), stdout=out, stderr=out)
    except CommandError as error:
        return error.returncode, f"{out.getvalue()}{error}"
    return 0, out.getvalue()


def told(*arguments: object) -> tuple[int, Any]:
    out = io.StringIO()
    try:
        call_command("migrate_runs", *map(str, arguments), "--json", stdout=out)
    except CommandError as error:
        return error.returncode, json.loads(out.getvalue())
    return 0, json.loads(out.getvalue())


def test_a_dry_run_says_what_would_move_and_changes_nothing(payments: RunningDestination) -> None:
    with process_with(first_version(), second_version()):
        sleeping = [asleep(f"ORD-{number}") for number in range(3)]
        switched(Provider.objects.get(), "paused")
        unsettled = advanced(first_run("ORD-8"))
        before = everything()
        code, text = said(NAME, "--dry-run")
        assert everything() == before
        assert (code, text.splitlines()) == (
            1,
            [
                "It would be: 3 of 4 runs of tests.versioned moved to version 2",
                "  from version 1, settled -> settled: 3 runs",
                "  stay under version 1 at pay: 1 run. A write of its is not settled.",
                "    Helps: Let it be settled first: by a worker that has version 1, or by the "
                "decision that it waits for.",
                f"    {unsettled.pk}  Refund order ORD-8",
                "1 run of 4 stays.",
            ],
        )
        code, answer = told(NAME, "--dry-run")
        assert everything() == before
    assert code == 1
    assert answer == {
        "workflow": NAME,
        "to_version": 2,
        "dry_run": True,
        "runs": 4,
        "looked_at": 4,
        "moved": [
            {
                "from_version": 1,
                "from_step": "settled",
                "to_step": "settled",
                "count": 3,
                "runs": [str(run.pk) for run in sleeping],
            }
        ],
        "stayed": [
            {
                "from_version": 1,
                "from_step": "pay",
                "reason": "unsettled",
                "message": "A write of its is not settled.",
                "helps": "Let it be settled first: by a worker that has version 1, or by the "
                "decision that it waits for.",
                "count": 1,
                "runs": [{"id": str(unsettled.pk), "about": "Refund order ORD-8"}],
            }
        ],
    }


def test_a_dry_run_shows_what_the_authors_functions_cannot_do(
    payments: RunningDestination,
) -> None:
    broken = second_version(outputs={"load": lambda old: {"amount": old["price"]}})
    with process_with(first_version(), broken):
        asleep()
        before = everything()
        code, answer = told(NAME, "--dry-run")
        assert everything() == before
    (stays,) = answer["stayed"]
    assert (code, stays["reason"], stays["runs"][0]["about"]) == (
        1,
        "change_failed",
        "KeyError: 'price'",
    )


def test_when_all_have_moved_the_command_ends_well_and_again_finds_nothing(
    payments: RunningDestination,
) -> None:
    with process_with(first_version(), second_version()):
        runs = [asleep("ORD-1"), asleep("ORD-2")]
        code, text = said(NAME, "--by", "ada")
        assert (code, text.splitlines()[0]) == (
            0,
            "2 of 2 runs of tests.versioned moved to version 2",
        )
        assert set(AuditEntry.objects.filter(verb="run migrated").values_list("actor")) == {
            ("command:ada",)
        }
        assert {Run.objects.get(pk=run.pk).version for run in runs} == {2}
        assert said(NAME) == (
            0,
            "No unfinished run of tests.versioned is of a version before 2.\n",
        )


def test_one_run_one_tenant_one_version_or_so_many_are_chosen() -> None:
    third = small(3, from_version=2)
    third.migrates(from_version=1)
    with process_with(small(1), small(2), third):
        mine = start(FLOW, {}, tenant=tenant(), version=1)
        theirs = start(FLOW, {}, tenant=tenant("elsewhere"), version=1)
        newer = start(FLOW, {}, tenant=tenant(), version=2)

        def chosen(*arguments: object) -> set[str]:
            _, answer = told(FLOW, "--dry-run", *arguments)
            return {run for group in answer["moved"] for run in group["runs"]}

        assert chosen("--run", mine.pk) == {str(mine.pk)}
        assert chosen("--tenant", "elsewhere") == {str(theirs.pk)}
        assert chosen("--from", 2) == {str(newer.pk)}
        assert chosen("--to", 2) == {str(mine.pk), str(theirs.pk)}
        assert chosen("--limit", 1) == {str(mine.pk)}
        assert chosen() == {str(mine.pk), str(theirs.pk), str(newer.pk)}
        code, text = said(FLOW, "--dry-run", "--limit", 1)
        assert (code, text.splitlines()[-1]) == (0, "Not looked at: 2 runs")
        Run.objects.filter(pk=mine.pk).update(
            state="failed", finished_at=Now(), failure={"message": ""}
        )
        for arguments, refusal in [
            (["--run", mine.pk], "is failed already"),
            (["--run", newer.pk, "--to", 2], "is of version 2 of tests.small already"),
            (["--run", uuid4()], "there is no run"),
            (["--run", newer.pk, "--from", 1], "there is no run"),
            (["--tenant", "nowhere"], "there is no tenant 'nowhere'"),
            (["--to", 9], "no workflow 'tests.small' version 9 here"),
        ]:
            code, text = said(FLOW, *arguments)
            assert (code, refusal in text) == (1, True), text
        code, text = said(FLOW, "--from", 3)
        assert (code, "later versions only" in text) == (2, True)


def test_pages_follow_each_other_and_the_same_questions_serve_many_runs() -> None:
    with process_with(small(1), small(2)):
        few = many_runs(3, "ready", workflow=FLOW, step="act")
        with statements() as asked:
            assert told(FLOW, "--dry-run")[1]["looked_at"] == 3
        for_few = len(asked)
        many_runs(40, "ready", workflow=FLOW, step="act")
        with statements() as asked:
            assert told(FLOW, "--dry-run")[1]["looked_at"] == 43
        assert len(asked) == for_few
        many_runs(80, "ready", workflow=FLOW, step="act")
        Run.objects.filter(pk=few[0].pk).update(step="gone")
        code, answer = told(FLOW)
        assert (code, answer["looked_at"]) == (1, 123)
        assert [group["count"] for group in answer["moved"]] == [122]
        assert Run.objects.filter(version=2, fence=F("fence")).count() == 122
