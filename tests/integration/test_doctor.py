"""`manage.py doctor`: each thing that is wrong is said, with what mends it."""

from __future__ import annotations

import io
import json
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.db.models.functions import Now
from pytest_django import Settings

from reconciliation.models import DispatchStop, Provider
from reconciliation.services.audit import add_entry, check_chain
from romulus_site import doctor
from tests.factories import many_runs, quick_contract, ready_provider
from tests.storages import ChangesBytes, IsFull, use
from tests.tampering import tamper
from workflows.models import Worker
from workflows.services.clock import database_now
from workflows.storage import PrivateFiles

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def healthy() -> None:
    """A system at which nothing is wrong: a worker that has everything, a record that is whole."""
    Worker.objects.create(host="here", pid=1, workflows=[["refund", 1]])
    ready_provider("payments")
    add_entry("system", "set up", "provider:payments", {})
    check_chain("system")


def found() -> dict[str, dict[str, str]]:
    """The worst finding of each part."""
    order = list(doctor.Verdict)
    findings = sorted(doctor.examined(), key=lambda each: order.index(each.verdict))
    return {each.part: asdict(each) for each in findings}


def verdicts() -> dict[str, str]:
    return {part: each["verdict"] for part, each in found().items()}


def test_of_a_healthy_system_it_has_nothing_to_say() -> None:
    said = found()
    assert {each["verdict"] for each in said.values()} == {"fine"}
    assert set(said) == {
        *("settings", "database", "migrations", "broker", "outputs", "workers"),
        *("provider payments", "dispatch", "audit record"),
    }
    assert not any(each["helps"] for each in said.values())
    out = io.StringIO()
    call_command("doctor", "--json", stdout=out)
    assert [each["verdict"] for each in json.loads(out.getvalue())] == ["fine"] * 9


def test_lines_for_people_say_what_helps() -> None:
    Worker.objects.all().delete()
    out = io.StringIO()
    with pytest.raises(CommandError, match="1 of 9 things are wrong"):
        call_command("doctor", stdout=out)
    assert "WRONG workers: None is alive: runs wait. Start some" in out.getvalue()
    assert "ok    dispatch: On." in out.getvalue()


def test_runs_that_no_worker_can_take_are_named() -> None:
    many_runs(1, "ready", version=7)
    text = found()["workers"]
    assert "None has refund version 7" in text["text"]
    assert "migrate_runs refund" in text["helps"]


@pytest.mark.parametrize(
    ("changes", "verdict", "said"),
    [
        ({"default_queue": None}, "wrong", "It lacks an owner"),
        (
            {"contradicted_at": Now(), "contradiction": "two for one key"},
            "wrong",
            "two for one key",
        ),
        ({"replay_trust": ""}, "note", "was never shown"),
    ],
)
def test_a_provider_that_is_not_ready_is_named(
    changes: dict[str, Any], verdict: str, said: str
) -> None:
    Provider.objects.update(**changes)
    finding = found()["provider payments"]
    assert finding["verdict"] == verdict
    assert said in finding["text"]
    assert finding["helps"]


def test_a_contract_whose_review_is_overdue_is_a_note() -> None:
    dates = {"reviewed_on": "2020-01-01", "review_again_on": "2020-06-01"}
    Provider.objects.update(contract_version=quick_contract("keyed", **dates))
    assert verdicts()["provider payments"] == "note"


def test_what_is_stopped_is_a_note_until_it_ends() -> None:
    stop = DispatchStop.objects.create(state="paused", by="user:1 ada", reason="They are down.")
    assert "paused for everything" in found()["dispatch"]["text"]
    DispatchStop.objects.filter(pk=stop.pk).update(until=Now() - timedelta(seconds=1))
    assert verdicts()["dispatch"] == "fine"


@pytest.mark.parametrize("kind", [IsFull, ChangesBytes])
def test_a_storage_that_keeps_nothing_or_something_else_is_wrong(
    settings: Settings, tmp_path: Path, kind: type[PrivateFiles]
) -> None:
    use(settings, tmp_path, kind)
    assert verdicts()["outputs"] == "wrong"


def test_a_record_that_is_broken_or_was_not_checked_is_said() -> None:
    long_ago = database_now() - timedelta(days=3)
    tamper("reconciliation_auditentry", f"at = '{long_ago.isoformat()}'", "seq = 2")
    assert verdicts()["audit record"] == "note"
    check_chain("system")
    assert "Entry 2 was changed" in found()["audit record"]["text"]


def test_a_broker_that_is_away_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CELERY_BROKER_WRITE_URL", "redis://127.0.0.1:1/0")
    assert verdicts()["broker"] == "wrong"


def test_debug_is_wrong_and_cookies_without_tls_are_a_note(settings: Settings) -> None:
    settings.ROMULUS_EMBEDDED, settings.ROMULUS_TLS = False, False
    assert verdicts()["settings"] == "note"
    settings.DEBUG = True
    assert verdicts()["settings"] == "wrong"


def test_while_the_database_is_away_nothing_else_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away() -> Any:
        raise OperationalError("connection refused")

    monkeypatch.setattr(connection, "cursor", away)
    findings = list(doctor.examined())
    assert [each.part for each in findings] == ["settings", "database"]
    assert findings[-1].text == "It does not answer: connection refused"
